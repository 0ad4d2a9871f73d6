package dev.foliort;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Text as it crosses to the native library: UTF-8, and many as one, each with a NUL at its end. */
final class Text {
    private Text() {}

    static byte[] utf8(String text) {
        if (text == null) throw FolioException.invalid("a name, key or path is null");
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String of(byte[] utf8) {
        return new String(utf8, StandardCharsets.UTF_8);
    }

    static byte[] join(Iterable<String> texts) {
        ByteArrayOutputStream result = new ByteArrayOutputStream(64);
        for (String text : texts) {
            byte[] bytes = utf8(text);
            if (text.indexOf('\0') >= 0) throw FolioException.invalid("a name contains a NUL: '" + text + "'");
            result.write(bytes, 0, bytes.length);
            result.write(0);
        }
        return result.toByteArray();
    }

    static List<String> split(byte[] joined) {
        List<String> result = new ArrayList<>();
        int begin = 0;
        for (int at = 0; at < joined.length; ++at) {
            if (joined[at] != 0) continue;
            result.add(new String(joined, begin, at - begin, StandardCharsets.UTF_8));
            begin = at + 1;
        }
        return result;
    }
}
