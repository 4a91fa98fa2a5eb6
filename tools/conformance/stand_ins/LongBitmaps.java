package org.apache.pulsar.common.util.collections;

import java.util.BitSet;

/** Stands in for the factory of bitmaps of pulsar-common 5.0.1, which Maven does not find. */
public final class LongBitmaps {
    private LongBitmaps() { }

    public static LongBitmap create() {
        return new LongBitmap.Bits(new BitSet());
    }

    public static LongBitmap deserializeFromLongArray(long[] words) {
        return new LongBitmap.Bits(BitSet.valueOf(words));
    }
}
