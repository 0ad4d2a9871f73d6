// The `folio` command: reads the command line and calls one subcommand.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <new>

#include "tools/folio/cli.h"
#include "tools/folio/usage.h"

namespace folio_cli {

namespace {

// Of what the machine limits.
constexpr uint64_t kAnyCount = std::numeric_limits<uint64_t>::max();

class Cli {
 public:
  Cli() {
    app_.name("folio");
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "folio " FOLIO_VERSION);
    add_library_option(&app_);
    app_.footer(
        "Exit codes: 0 done, 1 a test failed, 2 usage, 3 cannot load or run, 4 unsupported.\n"
        "Options of a command: folio COMMAND --help");
    add_run();
    add_test();
    add_bench();
    add_compare();
    add_compare_side();
    add_inspect();
    add_convert();
    add_memory();
    add_pack();
    add_store();
    add_doctor();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
      return when_written(chosen_());
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return when_written(app_.exit(error));
      const std::string option = no_option();
      if (!option.empty()) return report(option, kExitUsage);
      const bool lacks = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
      if (lacks && app_.get_subcommands().empty()) return report(no_command(), kExitUsage);
      const std::string hint = lacks ? "; " + command_name() + " --help shows how it is used" : "";
      return report(error.what() + hint, kExitUsage);
    } catch (const folio::Error& error) {
      return report(error.what(), exit_code_of(error));
    } catch (const CliError& error) {
      return report(error.what(), error.exit_code());
    } catch (const std::bad_alloc&) {
      return report("out of memory", kExitCannotRun);
    } catch (const std::exception& error) {
      return report(error.what(), kExitCannotRun);
    }
  }

 private:
  // `exit_code`, unless what was printed did not all arrive: a full disk must not pass for a
  // result.
  static int when_written(int exit_code) {
    errno = 0;
    const bool is_flushed = std::fflush(stdout) == 0;  // of CLI11's std::cout, too
    if (is_flushed && std::ferror(stdout) == 0) return exit_code;
    // An earlier write may have failed, of which no reason is kept.
    const std::string reason =
        is_flushed || errno == 0 ? "" : std::string(": ") + std::strerror(errno);
    return report("cannot write to standard output" + reason, kExitCannotRun);
  }

  static int report(const std::string& message, ExitCode code) {
    std::fflush(stdout);
    if (!message.empty()) say_error(message);
    return code;
  }

  // CLI11 only says that there is no command, whatever stands in its place.
  std::string no_command() const {
    const auto is_for_people = [](const CLI::App* app) { return !app->get_group().empty(); };
    std::vector<std::string> commands;
    for (const CLI::App* app : app_.get_subcommands(is_for_people)) {
      commands.push_back(app->get_name());
    }
    const std::vector<std::string> words = app_.remaining();
    return wrong_command(words.empty() ? "" : words[0], commands);
  }

  // "folio run", as far as it was given.
  std::string command_name() const {
    std::string name = "folio";
    for (const CLI::App* app : app_.get_subcommands()) name += " " + app->get_name();
    return name;
  }

  // Nor that an option is none, where its value stands for what a command needs.
  std::string no_option() const {
    std::vector<std::string> options;
    const auto add = [&](const CLI::App* app) {
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
      }
    };
    add(&app_);
    for (const CLI::App* app : app_.get_subcommands()) add(app);
    const std::vector<std::string> words = app_.remaining(/*recurse=*/true);
    const bool is_no_command = app_.get_subcommands().empty() && !words.empty() &&
                               words[0].find('-') != 0;  // what its options are nobody knows
    const std::string wrong = is_no_command ? "" : wrong_option(words, options);
    return wrong.empty() ? "" : wrong + "; " + command_name() + " --help lists them";
  }

  // Before and after the command's name; CLI11's own way for that (fallthrough) would take a folder
  // called like a command for the command.
  void add_library_option(CLI::App* app) {
    app->add_option("--library", common_.library, "libfolio.so.1 to use")->type_name("PATH");
  }

  CLI::App* add_command(const char* name, const char* what, std::function<int()> function) {
    CLI::App* command = app_.add_subcommand(name, what);
    add_library_option(command);
    command->final_callback([this, function = std::move(function)] { chosen_ = function; });
    return command;
  }

  static void add_session_options(CLI::App* command, SessionSettings* settings) {
    constexpr uint64_t kThreadsMax = 9999;  // folio.threads
    count(command, "--threads", &settings->threads, 0, "threads of a run; 0: the library's choice",
          kThreadsMax);
    repeated(command, "--config", &settings->config, "KEY=VALUE",
             "a configuration key, see docs/config_keys.md; may be repeated");
  }

  static void add_input_files(CLI::App* command, std::vector<std::string>* files) {
    repeated(command, "--input", files, "NAME=FILE",
             "an input from a .npy or .pb file; others are made up; may be repeated");
  }

  static void add_input_options(CLI::App* command, InputOptions* input) {
    repeated(command, "--dim", &input->dims, "NAME=N",
             "value of a free dimension of made-up inputs (1); may be repeated");
    repeated(command, "--range", &input->ranges, "NAME=LO:HI",
             "range of a made-up input; may be repeated");
    count(command, "--seed", &input->seed, 0, "seed of made-up inputs (1)", kAnyCount);
  }

  template <typename Number>
  static CLI::Option* count(CLI::App* command, const char* name, Number* value, uint64_t min,
                            const char* what, uint64_t max = kCountMax) {
    return command->add_option(name, *value, what)
        ->type_name("N")
        ->transform(whole_number(min, max));
  }

  static void add_tolerances(CLI::App* command, double* rtol, double* atol) {
    command->add_option("--rtol", *rtol, "relative tolerance (data.json, else 1e-3; of integers 0)")
        ->type_name("R")
        ->check(real_number());
    command->add_option("--atol", *atol, "absolute tolerance (data.json, else 1e-7; of integers 0)")
        ->type_name("A")
        ->check(real_number());
  }

  static void repeated(CLI::App* command, const char* name, std::vector<std::string>* values,
                       const char* type, const char* what) {
    command->add_option(name, *values, what)
        ->type_name(type)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void add_run() {
    CLI::App* command =
        add_command("run", "run a model once", [this] { return run_run(common_, run_); });
    command->add_option("MODEL", run_.model, ".onnx or .ort file")->required();
    add_input_files(command, &run_.inputs);
    command->add_option("--output-dir", run_.output_dir, "write each output there as .npy")
        ->type_name("DIR");
    command->add_flag("--json", run_.json, "one JSON object on standard output");
    add_input_options(command, &run_.input);
    add_session_options(command, &run_.session);
    command->footer(
        "Examples:\n"
        "  folio run model.onnx\n"
        "  folio run model.onnx --input image=cat.npy --output-dir out\n"
        "  folio run bert.onnx --dim batch=1 --dim sequence=128 --range input_ids=0:30000");
  }

  void add_test() {
    CLI::App* command = add_command("test", "compare models with their reference outputs",
                                    [this] { return run_test(common_, test_); });
    command->add_option("DIR", test_.folders, "folders in the ONNX test layout, at any depth")
        ->required();
    add_tolerances(command, &test_.rtol, &test_.atol);
    count(command, "--jobs", &test_.jobs, 1, "tests at a time (1)");
    count(command, "--timeout", &test_.timeout_seconds, 0, "seconds a test may take (300)")
        ->type_name("S");
    command->add_flag("--in-process", test_.in_process,
                      "no process per test: a crash ends the command; for debuggers");
    command->add_flag("--json", test_.json, "one JSON object on standard output");
    add_session_options(command, &test_.session);
    command->footer(
        "Prints PASS|FAIL|UNSUPPORTED path reason, then the counts. A test is a model.onnx or\n"
        "model.ort with folders test_data_set_<k> beside it.\n"
        "Examples:\n"
        "  folio test models\n"
        "  folio test models --config session.disable_prepacking=1 --json");
  }

  void add_bench() {
    CLI::App* command = add_command("bench", "measure load, runs and memory",
                                    [this] { return run_bench(common_, bench_); });
    command->add_option("MODEL", bench_.model, ".onnx or .ort file")->required();
    add_input_files(command, &bench_.inputs);
    count(command, "--warmup", &bench_.warmup, 0, "runs before the timed ones (3)");
    count(command, "--iterations", &bench_.iterations, 0, "timed runs (20); 0: only load");
    command->add_option("--seconds", bench_.seconds, "timed runs for so long, instead")
        ->type_name("S")
        ->check(real_number());
    count(command, "--sessions", &bench_.sessions, 1, "sessions of the model (1)");
    count(command, "--sample-us", &bench_.sample_us, 0,
          "interval at which peak memory is looked at (3000); 0: never");
    command->add_flag("--json", bench_.json, "one JSON object on one line of standard output");
    command->add_flag(
        "--profile", bench_.profile,
        "then where the time goes, by operator and node, and how near that is to what "
        "the machine can do");
    count(command, "--top", &bench_.top, 0, "nodes in the table of the profile (20)");
    command->add_option("--trace", bench_.trace, "write all runs as a Chrome trace")
        ->type_name("FILE");
    auto* hold = command->add_flag("--hold", bench_.hold,
                                   "then print SESSION_READY and wait for the end of input");
    count(command, "--hold-ms", &bench_.hold_ms, 0, "then print SESSION_READY and sleep")
        ->excludes(hold);
    add_input_options(command, &bench_.input);
    add_session_options(command, &bench_.session);
    command->footer(
        "Examples:\n"
        "  folio bench model.onnx --threads 2\n"
        "  folio bench model.onnx --input image=cat.npy\n"
        "  folio bench bert.onnx --dim batch=1 --dim sequence=128 --seconds 5 --json\n"
        "  folio bench model.onnx --threads 1 --profile --trace runs.json\n"
        "  folio bench model.onnx --iterations 1 --sessions 100 --hold");
  }

  template <typename Command>
  static void add_measure_options(CLI::App* command, Command* options) {
    count(command, "--warmup", &options->warmup, 0, "runs before the timed ones (3)");
    count(command, "--iterations", &options->iterations, 1, "timed runs of a process (20)");
    count(command, "--timeout", &options->timeout_seconds, 0,
          "seconds a process may take (600); 0: no limit")
        ->type_name("S");
    add_input_files(command, &options->inputs);
    add_input_options(command, &options->input);
    add_session_options(command, &options->session);
  }

  void add_compare() {
    CLI::App* command = add_command("compare", "put Folio and ONNX Runtime side by side",
                                    [this] { return run_compare(common_, compare_); });
    command->add_option("MODEL", compare_.models, "models, or folders with model.onnx or model.ort")
        ->required();
    command->add_option("--ort", compare_.ort, "ONNX Runtime's library (FOLIO_ORT_LIBRARY)")
        ->type_name("LIB")
        ->envname("FOLIO_ORT_LIBRARY");
    command->add_option("--against", compare_.against, "the other side: ort or folio (ort)")
        ->type_name("NAME")
        ->check(CLI::IsMember({"ort", "folio"}));
    repeated(command, "--against-config", &compare_.against_config, "KEY=VALUE",
             "a configuration key of the other side; may be repeated");
    command
        ->add_option("--against-library", compare_.against_library,
                     "with --against folio: libfolio.so.1 of the other side")
        ->type_name("PATH");
    count(command, "--rounds", &compare_.rounds, 1, "processes per side, in turns (3)");
    add_tolerances(command, &compare_.rtol, &compare_.atol);
    command->add_flag("--made-up", compare_.made_up, "make inputs up beside test data too");
    command->add_option("--plot", compare_.plot, "write a picture of the ratios")
        ->type_name("FILE.svg");
    command->add_flag("--json", compare_.json, "one JSON object per model, each on one line");
    add_measure_options(command, &compare_);
    command->footer(
        "Differences are those of Folio's outputs from the other side's; ratios are Folio to the\n"
        "other side: below 1, Folio is faster or smaller. Exit code 1: outputs differ.\n"
        "Examples:\n"
        "  folio compare models --ort libonnxruntime.so.1 --threads 1 --plot ratios.svg\n"
        "  folio compare model.onnx --ort libonnxruntime.so.1 --dim batch=4 --json\n"
        "  folio compare model.onnx --against folio --against-config session.disable_prepacking=1");
  }

  // What `folio compare` starts; not for people.
  void add_compare_side() {
    CLI::App* command = add_command("compare-side", "one process of folio compare",
                                    [this] { return run_compare_side(common_, compare_side_); });
    command->group("");
    command->add_option("MODEL", compare_side_.model)->required();
    command->add_option("--ort", compare_side_.ort);
    command->add_option("--data-set", compare_side_.data_set);
    command->add_option("--outputs", compare_side_.outputs);
    command->add_option("--sample-us", compare_side_.sample_us);
    command->add_flag("--strict-names", compare_side_.strict_names);
    add_measure_options(command, &compare_side_);
  }

  void add_inspect() {
    CLI::App* command = add_command("inspect", "show what is in a model",
                                    [this] { return run_inspect(common_, inspect_); });
    command->add_option("MODEL", inspect_.model, ".onnx, .ort or .fpack file")->required();
    command->add_flag("--json", inspect_.json, "one JSON object on standard output");
    command->footer(
        "Exit code 4, and a list of nodes, if there are operators that Folio cannot run.\n"
        "Example:\n"
        "  folio inspect model.onnx");
  }

  void add_convert() {
    CLI::App* command = add_command("convert", "write a model as another file, optimized or not",
                                    [this] { return run_convert(common_, convert_); });
    command->add_option("MODEL", convert_.model, ".onnx or .ort file")->required();
    command->add_option("-o,--output", convert_.output, "the file to write")
        ->required()
        ->type_name("FILE.onnx|FILE.ort");
    command->add_option("--optimize", convert_.optimize, "none, basic, extended or all (all)")
        ->type_name("LEVEL")
        ->check(CLI::IsMember({"none", "basic", "extended", "all"}));
    command->add_option("--format", convert_.format, "ONNX or ORT; else by the file's name")
        ->check(CLI::IsMember({"ONNX", "ORT"}));
    command
        ->add_option("--external-data", convert_.external_file,
                     "of ONNX: keep large initializers in a file of this name beside it")
        ->type_name("NAME");
    count(command, "--external-min-bytes", &convert_.external_min_bytes, 1,
          "which initializers are large (1024)", kAnyCount);
    command->add_flag("--pack", convert_.pack, "write the result's pack file too, OUTPUT.fpack");
    command->add_flag("--json", convert_.json, "one JSON object on standard output");
    command->footer(
        "ONNX Runtime loads the result too, as long as the model has only operators that it knows\n"
        "and an .ort file has less than 2 GB.\n"
        "Example:\n"
        "  folio convert model.onnx -o model.ort");
  }

  void add_memory() {
    CLI::App* command = add_command("memory", "show what a model costs in several processes",
                                    [this] { return run_memory(common_, memory_); });
    command->add_option("MODEL", memory_.model, ".onnx or .ort file")->required();
    auto* processes =
        count(command, "--processes", &memory_.processes, 1, "1 to so many processes (4)");
    auto* sessions =
        count(command, "--sessions", &memory_.sessions, 1, "sessions in each process (1)");
    auto* modes = command->add_flag("--modes", memory_.modes,
                                    "one process per way to load the model instead: read, mapped, "
                                    "mapped with a pack file");
    count(command, "--rounds", &memory_.rounds, 1, "with --modes: processes per way, in turns (5)")
        ->needs(modes);
    command->add_option("--ort", memory_.ort, "with --modes: rows of ONNX Runtime too, its library")
        ->type_name("LIB")
        ->needs(modes);
    modes->excludes(processes)->excludes(sessions);
    command->add_option("--plot", memory_.plot, "write a bar plot")->type_name("FILE.svg");
    command->add_flag("--json", memory_.json, "one JSON object on standard output");
    add_input_options(command, &memory_.input);
    add_session_options(command, &memory_.session);
    command->footer(
        "With --modes: model.onnx and model.ort beside it, if both are there, each way in "
        "--rounds\n"
        "fresh processes; the pack file is made in a temporary folder (TMPDIR) that is removed.\n"
        "Examples:\n"
        "  folio memory model.onnx --processes 8 --threads 1 --plot memory.svg\n"
        "  folio memory model.onnx --modes --rounds 9");
  }

  void add_pack() {
    CLI::App* command =
        add_command("pack", "write a model's weights in the form kernels compute from",
                    [this] { return run_pack(common_, pack_); });
    command->add_option("MODEL", pack_.models, ".onnx or .ort files")->required();
    command
        ->add_option("-o,--output", pack_.output,
                     "the pack file (MODEL.fpack); with --replace: the model to write (MODEL)")
        ->type_name("FILE");
    command->add_option("--store", pack_.store, "add to this pack store instead")->type_name("DIR");
    command->add_option("--isa", pack_.levels, "kernel levels to pack for (this machine's)")
        ->type_name("LIST");
    command->add_flag("--check", pack_.check,
                      "write nothing; exit code 1 if a session would pack anything");
    command->add_flag(
        "--replace", pack_.replace,
        "leave the weights in the pack file alone: the model (or -o) is written anew");
    command->add_flag("--json", pack_.json, "one JSON object per model, each on one line");
    repeated(command, "--dim", &pack_.dims, "NAME=N", "a free dimension that sessions will fix");
    add_session_options(command, &pack_.session);
    command->footer(
        "Sessions find MODEL.fpack by themselves, and stores by the key folio.pack_store. A model\n"
        "that cannot be packed does not stop the others; the exit code says that there was one.\n"
        "Examples:\n"
        "  folio pack model.onnx\n"
        "  folio pack models/*.onnx --store /var/cache/folio\n"
        "  folio pack model.onnx --replace      # 'folio convert' gives the weights back");
  }

  void add_store() {
    CLI::App* command = add_command("store", "look after a pack store",
                                    [this] { return run_store(common_, store_); });
    command->add_option("ACTION", store_.action, "ls, verify or gc")
        ->required()
        ->check(CLI::IsMember({"ls", "verify", "gc"}));
    command->add_option("DIR", store_.folder, "the store")->required();
    command->add_option("--limit", store_.limit, "gc: remove the oldest packs above this size")
        ->type_name("BYTES");
    command->add_flag("--json", store_.json, "one JSON object on standard output");
    command->footer(
        "verify compares every blob with its checksum (exit code 1: damaged); gc removes "
        "leftovers\n"
        "and damaged packs and writes the index anew.\n"
        "Example:\n"
        "  folio store gc /var/cache/folio --limit 20G");
  }

  void add_doctor() {
    CLI::App* command = add_command("doctor", "show what matters of this machine",
                                    [this] { return run_doctor(common_, doctor_); });
    command->add_flag("--json", doctor_.json, "one JSON object on standard output");
    command->footer("Put its output into bug reports.");
  }

  CLI::App app_{"Runs, tests and measures ONNX and ORT models with Folio."};
  std::function<int()> chosen_;
  CommonOptions common_;
  RunCommand run_;
  TestCommand test_;
  BenchCommand bench_;
  CompareCommand compare_;
  CompareSideCommand compare_side_;
  InspectCommand inspect_;
  ConvertCommand convert_;
  MemoryCommand memory_;
  PackCommand pack_;
  StoreCommand store_;
  DoctorCommand doctor_;
};

}  // namespace

}  // namespace folio_cli

int main(int argc, char** argv) { return folio_cli::Cli().run(argc, argv); }
