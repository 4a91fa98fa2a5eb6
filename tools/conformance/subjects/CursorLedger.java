package org.apache.bookkeeper.client;

/** The ledger to which a cursor appends its state: it keeps the bytes of the last entry and answers nothing. */
public class CursorLedger extends LedgerHandle {
    private byte[] data;

    /** Never called: the object is allocated. */
    CursorLedger() throws Exception {
        super(null, 0, null, null, null, null);
    }

    @Override
    public void asyncAddEntry(byte[] bytes, AsyncCallback.AddCallback callback, Object context) {
        data = bytes;
    }

    public byte[] appended() {
        return data;
    }
}
