package org.apache.pulsar.broker.service.persistent;

import org.apache.bookkeeper.mledger.ManagedCursor;

/**
 * Stands in for the dispatcher of a subscription, which a tracker of delayed messages asks for a name and tells that
 * messages are due. The released class needs the whole broker.
 */
public class AbstractPersistentDispatcherMultipleConsumers {
    private final String name;
    private int reads;

    public AbstractPersistentDispatcherMultipleConsumers(String name) {
        this.name = name;
    }

    public String getName() {
        return name;
    }

    public ManagedCursor getCursor() {
        return null;
    }

    public void readMoreEntriesAsync() {
        reads++;
    }

    /** How often a tracker said that messages are due. */
    public int reads() {
        return reads;
    }
}
