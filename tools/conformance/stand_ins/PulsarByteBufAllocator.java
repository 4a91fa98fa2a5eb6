package org.apache.pulsar.common.allocator;

import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.UnpooledByteBufAllocator;

/**
 * Stands in for the allocator of pulsar-common 5.0.1, which Maven does not find. The entry cache of 5.0.1 asks for it
 * when its class is loaded and uses it for copies of payloads, which the traces do not make.
 */
public final class PulsarByteBufAllocator {
    public static final ByteBufAllocator DEFAULT = UnpooledByteBufAllocator.DEFAULT;

    private PulsarByteBufAllocator() { }

    public static ByteBufAllocator getOrCreate(String name) {
        return DEFAULT;
    }
}
