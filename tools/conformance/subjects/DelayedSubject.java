package org.apache.bookkeeper.mledger.impl.cache;

import io.netty.util.Timeout;
import io.netty.util.Timer;
import io.netty.util.TimerTask;
import java.lang.reflect.Proxy;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Set;
import org.apache.bookkeeper.mledger.Position;
import org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTracker;
import org.apache.pulsar.broker.service.persistent.AbstractPersistentDispatcherMultipleConsumers;

/** The delayed messages of one subscription. The clock and the timer are the trace's. */
final class DelayedSubject implements Driver.Subject {
    private static final long LEDGER = 3;
    /** The 0 of a trace: the release takes the last run of its timer to have been at 0. */
    private static final long EPOCH = 1L << 40;

    private final InMemoryDelayedDeliveryTracker tracker;
    private final AbstractPersistentDispatcherMultipleConsumers dispatcher =
            new AbstractPersistentDispatcherMultipleConsumers("trace");
    private final long start;
    private long now;
    /** The timer that was set last and not cancelled since, and when it fires. */
    private Timeout armed;
    private TimerTask task;
    private long fireAt;

    DelayedSubject(String[] words) {
        start = EPOCH + Long.parseLong(words[5]);
        now = start;
        Clock clock = new Clock() {
            @Override
            public ZoneId getZone() {
                return ZoneOffset.UTC;
            }

            @Override
            public Clock withZone(ZoneId zone) {
                return this;
            }

            @Override
            public Instant instant() {
                return Instant.ofEpochMilli(now);
            }

            @Override
            public long millis() {
                return now;
            }
        };
        Timer timer = (Timer) Proxy.newProxyInstance(
                DelayedSubject.class.getClassLoader(), new Class<?>[] {Timer.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "newTimeout" -> arm((TimerTask) arguments[0], (long) arguments[1]);
                    case "stop" -> Set.of();
                    default -> throw new UnsupportedOperationException(method.getName());
                });
        tracker = new InMemoryDelayedDeliveryTracker(dispatcher, timer, Long.parseLong(words[2]), clock,
                words[3].equals("1"), Long.parseLong(words[4]));
    }

    private Timeout arm(TimerTask next, long delay) {
        boolean[] cancelled = new boolean[1];
        Timeout made = (Timeout) Proxy.newProxyInstance(
                DelayedSubject.class.getClassLoader(), new Class<?>[] {Timeout.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "cancel" -> {
                        cancelled[0] = true;
                        if (armed == proxy) {
                            armed = null;
                        }
                        yield true;
                    }
                    case "isCancelled" -> cancelled[0];
                    default -> throw new UnsupportedOperationException(method.getName());
                });
        armed = made;
        task = next;
        fireAt = now + delay;
        return made;
    }

    private String fire() throws Exception {
        if (armed == null || fireAt > now) {
            return "false";
        }
        Timeout fired = armed;
        armed = null;
        int before = dispatcher.reads();
        task.run(fired);
        return Boolean.toString(dispatcher.reads() > before);
    }

    private String apply(String[] words, long[] n) throws Exception {
        switch (words[0]) {
            case "add":
                return Boolean.toString(tracker.addMessage(LEDGER, n[1], now + n[2]));
            case "pass_time":
                now += n[1];
                return "done";
            case "scheduled": {
                StringBuilder found = new StringBuilder("found");
                for (Position position : tracker.getScheduledMessages((int) n[1])) {
                    found.append(' ').append(position.getEntryId());
                }
                return found.toString();
            }
            case "has_message":
                return Boolean.toString(tracker.hasMessageAvailable());
            case "should_pause":
                return Boolean.toString(tracker.shouldPauseAllDeliveries());
            case "clear":
                tracker.clear().join();
                return "done";
            case "set_tick":
                tracker.resetTickTime(n[1]);
                return "done";
            case "fire":
                return fire();
            case "timer":
                return armed == null ? "off" : "at " + (fireAt - start);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    @Override
    public String call(String[] words) throws Exception {
        long[] n = new long[words.length];
        for (int i = 1; i < words.length; i++) {
            n[i] = Long.parseLong(words[i]);
        }
        return apply(words, n) + " " + tracker.getNumberOfDelayedMessages();
    }
}
