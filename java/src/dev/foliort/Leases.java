package dev.foliort;

import java.util.ArrayList;
import java.util.List;

/** What a call has entered, to be left together, once. */
final class Leases implements Runnable {
    private final List<Lease> entered = new ArrayList<>();

    void enter(Lease lease) {
        lease.enter();
        entered.add(lease);
    }

    /** Enters the value called `name`. */
    NativeValue enter(Value value, String name) {
        if (value == null) throw FolioException.invalid("the value of '" + name + "' is null");
        enter(value.lease());
        return value.handle();
    }

    @Override
    public void run() {
        entered.forEach(Lease::leave);
        entered.clear();
    }
}
