package org.apache.bookkeeper.mledger.impl.cache;

import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.bookkeeper.mledger.ManagedCursor;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.impl.ActiveManagedCursorContainer;
import org.apache.bookkeeper.mledger.impl.ActiveManagedCursorContainerImpl;
import org.apache.bookkeeper.mledger.impl.ManagedCursorContainerImpl;

/**
 * Shows the findings of docs/upstream on the classes of a released managed-ledger jar: one line a check, with the
 * answer of the class and the right one. The findings of containers need nothing but the jar and its libraries; those
 * of stored acknowledgements use AckSubject.
 */
public final class Findings {
    private static final Map<String, ManagedCursor> CURSORS = new HashMap<>();
    private static final StringBuilder LINES = new StringBuilder();

    private static ManagedCursor cursor(String name) {
        return CURSORS.computeIfAbsent(name, key -> (ManagedCursor) Proxy.newProxyInstance(
                ManagedCursor.class.getClassLoader(), new Class<?>[] {ManagedCursor.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "getName", "toString" -> key;
                    case "isDurable" -> true;
                    case "hashCode" -> key.hashCode();
                    case "equals" -> proxy == arguments[0];
                    default -> throw new UnsupportedOperationException(method.getName());
                }));
    }

    private static Position at(long entry) {
        return PositionFactory.create(3, entry);
    }

    private static String text(Position position) {
        return position == null ? "none" : Long.toString(position.getEntryId());
    }

    private interface Check {
        String answer();
    }

    private static void show(String name, String right, Check check) {
        String answer;
        try {
            answer = check.answer();
        } catch (RuntimeException error) {
            answer = "raised " + error.getClass().getSimpleName();
        }
        LINES.append(name).append(": ").append(answer)
                .append(answer.equals(right) ? ", right" : ", right is " + right).append('\n');
    }

    private static ActiveManagedCursorContainer active(long... positions) {
        ActiveManagedCursorContainer container = new ActiveManagedCursorContainerImpl();
        for (int i = 0; i < positions.length; i++) {
            container.add(cursor("" + (char) ('a' + i)), at(positions[i]));
        }
        return container;
    }

    private static int rank(ActiveManagedCursorContainer container, String name) {
        return container.getNumberOfCursorsAtSamePositionOrBefore(cursor(name));
    }

    private static String tailLeaves() {
        ActiveManagedCursorContainer container = active(1, 1, 1, 1);
        rank(container, "a");
        container.updateCursor(cursor("d"), at(2));
        return "" + rank(container, "a");
    }

    private static String tailReturns() {
        ActiveManagedCursorContainer container = active(1, 1, 1, 2);
        rank(container, "a");
        container.updateCursor(cursor("d"), at(1));
        return "" + rank(container, "a");
    }

    private static ManagedCursorContainerImpl heap(long... positions) {
        ManagedCursorContainerImpl container = new ManagedCursorContainerImpl();
        for (int i = 0; i < positions.length; i++) {
            container.add(cursor("" + (char) ('a' + i)), at(positions[i]));
        }
        return container;
    }

    private static String heapMoves() {
        ManagedCursorContainerImpl container = heap(1, 10, 2, 11, 12, 3);
        container.removeCursor("d");
        container.cursorUpdated(cursor("a"), at(20));
        container.cursorUpdated(cursor("c"), at(20));
        return text(container.getSlowestCursorPosition());
    }

    private static String heapRemovals() {
        ManagedCursorContainerImpl container = heap(14, 6, 19, 12, 7, 5, 4);
        for (String name : List.of("a", "g", "f")) {
            container.removeCursor(name);
        }
        return text(container.getSlowestCursorPosition());
    }

    private static String nullTwice() {
        ActiveManagedCursorContainer container = active(1, 2, 3);
        for (int i = 0; i < 2; i++) {
            rank(container, "a");
            container.updateCursor(cursor("c"), null);
        }
        return text(container.getSlowestCursorPosition());
    }

    private static String nullRank() {
        ActiveManagedCursorContainer container = active(1, 2, 3);
        rank(container, "a");
        container.updateCursor(cursor("b"), null);
        return "" + rank(container, "b");
    }

    private static String addedTwice() {
        ManagedCursorContainerImpl container = heap(1);
        container.add(cursor("a"), at(5));
        container.removeCursor("a");
        return text(container.getSlowestCursorPosition());
    }

    private static String heapNull() {
        ManagedCursorContainerImpl container = heap(1, 2);
        container.cursorUpdated(cursor("a"), null);
        return text(container.getSlowestCursorPosition());
    }

    /** The last answer of a cursor whose state is stored; see AckSubject. */
    private static String acks(String... lines) {
        try {
            AckSubject cursor = new AckSubject(lines[0].split(" "));
            String answer = "";
            for (String line : List.of(lines).subList(1, lines.length)) {
                answer = cursor.call(line.split(" "));
            }
            return answer;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] arguments) {
        // What the classes log does not come between the lines.
        PrintStream output = System.out;
        System.setOut(System.err);
        checks();
        System.setOut(output);
        output.print(LINES);
        output.flush();
    }

    private static void checks() {
        show("active-rank, the tail leaves its group", "3", Findings::tailLeaves);
        show("active-rank, the tail comes back", "4", Findings::tailReturns);
        show("heap-slowest, after moves", "3", Findings::heapMoves);
        show("heap-slowest, after removals", "6", Findings::heapRemovals);
        show("null-position, rank", "0", Findings::nullRank);
        show("null-position, slowest after two", "1", Findings::nullTwice);
        show("null-position, slowest of the heap", "2", Findings::heapNull);
        show("added-twice, slowest of the heap", "none", Findings::addedTwice);
        show("ack-limits, two ranges within two", "3:-1 3:7-8 4:3-3",
                () -> acks("new acks 3 2 3 1", "ack 3 7", "ack 3 8", "ack 4 3", "store"));
        show("ack-limits, one range of two", "5:-1 5:1-1",
                () -> acks("new acks 5 1 0 0", "ack 5 27", "ack 5 1", "store"));
        show("ack-limits, a batch that is not stored", "false",
                () -> acks("new acks 5 4 0 0", "index 5 1 0", "fits"));
    }
}
