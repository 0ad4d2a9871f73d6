"""How a test script says that it was skipped: exit code 77 (SKIP_RETURN_CODE of cmake/tests.cmake), and each reason on a line
that begins with "skipped: " (build.sh lists those lines when the tests are over).

    if __name__ == "__main__":
        skipping.main()      # unittest's main, but 77 when no case passed or failed because every one was skipped
"""

import sys
import unittest

SKIP = 77


def leave(why):
    """Ends a script that cannot do its work here."""
    print(f"skipped: {why}", flush=True)
    sys.exit(SKIP)


class Result(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.passed += 1


class Runner(unittest.TextTestRunner):
    resultclass = Result


def report(skipped):
    """One line for each reason, with how many cases have it."""
    reasons = [reason for _, reason in skipped]
    for reason in dict.fromkeys(reasons):
        cases = [test.id().partition(".")[2] or test.id() for test, why in skipped if why == reason]
        print(f"skipped: {', '.join(cases) if len(cases) < 4 else f'{len(cases)} cases'}: {reason}", flush=True)


def main(why=None, **options):
    """Runs the script's cases; with `why`, says it and leaves instead."""
    if why:
        leave(why)
    result = unittest.main(exit=False, testRunner=Runner, **options).result
    report(result.skipped)
    if not result.wasSuccessful():
        sys.exit(1)
    if result.passed == 0:
        if not result.skipped:
            sys.exit("no case ran")
        sys.exit(SKIP)
