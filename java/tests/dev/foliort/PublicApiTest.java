package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The public API as a whole: every member of it is called by some test, and none shows what is internal. */
class PublicApiTest {
    private static final Set<String> MADE_BY_THE_COMPILER = Set.of("valueOf", "values", "equals", "hashCode", "toString");

    @Test
    void everyPublicMemberIsCalledByATest() throws Exception {
        Set<String> called = calledByTests();
        Set<String> missing = new TreeSet<>();
        for (Executable member : publicMembers()) {
            if (!called.contains(nameOf(member))) missing.add(nameOf(member));
        }
        assertEquals(Set.of(), missing);
    }

    @Test
    void noSignatureShowsWhatIsInternal() throws Exception {
        int count = 0;
        for (Executable member : publicMembers()) {
            List<Class<?>> types = new ArrayList<>(Arrays.asList(member.getParameterTypes()));
            if (member instanceof Method) types.add(((Method) member).getReturnType());
            for (Class<?> type : types) {
                boolean isOurs = type.getName().startsWith("dev.foliort.");
                assertTrue(!isOurs || Modifier.isPublic(type.getModifiers()), nameOf(member));
                assertTrue(!type.getSimpleName().startsWith("Native") && !type.getName().contains("SWIG"));
            }
            ++count;
        }
        assertTrue(count > 150, count + " members");
    }

    private static List<Executable> publicMembers() throws Exception {
        List<Executable> result = new ArrayList<>();
        for (Class<?> type : publicClasses()) {
            for (Constructor<?> constructor : type.getConstructors()) {
                if (!type.isRecord()) result.add(constructor);
            }
            if (type.isInterface()) continue; // the library calls those
            for (Method method : type.getDeclaredMethods()) {
                boolean isGenerated = MADE_BY_THE_COMPILER.contains(method.getName());
                if (Modifier.isPublic(method.getModifiers()) && !method.isSynthetic() && !isGenerated) {
                    result.add(method);
                }
            }
        }
        return result;
    }

    private static List<Class<?>> publicClasses() throws Exception {
        Path jar = Path.of(Model.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        List<Class<?>> result = new ArrayList<>();
        try (FileSystem files = FileSystems.newFileSystem(jar);
                DirectoryStream<Path> entries = Files.newDirectoryStream(files.getPath("dev/foliort"), "*.class")) {
            for (Path entry : entries) {
                String name = entry.getFileName().toString().replace(".class", "");
                if (name.equals("package-info")) continue;
                Class<?> type = Class.forName("dev.foliort." + name, false, Model.class.getClassLoader());
                if (Modifier.isPublic(type.getModifiers())) result.add(type);
            }
        }
        return result;
    }

    private static String nameOf(Executable member) {
        Class<?> result = member instanceof Method ? ((Method) member).getReturnType() : void.class;
        String type = MethodType.methodType(result, member.getParameterTypes()).toMethodDescriptorString();
        String name = member instanceof Method ? member.getName() : "<init>";
        return member.getDeclaringClass().getName().replace('.', '/') + "." + name + type;
    }

    /** What the compiled tests refer to; a call through a subclass or to an inherited method counts for the super class. */
    private static Set<String> calledByTests() throws Exception {
        Path folder = Path.of(PublicApiTest.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        Set<String> result = new HashSet<>();
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.filter(f -> f.toString().endsWith(".class")).collect(Collectors.toList())) {
                result.addAll(methodsIn(file));
            }
        }
        for (String name : List.copyOf(result)) {
            if (name.startsWith("dev/foliort/Tensor.")) result.add(name.replace("/Tensor.", "/Value."));
        }
        return result;
    }

    /** The methods in a class file's constant pool: class, name and type. */
    private static Set<String> methodsIn(Path file) throws IOException {
        try (InputStream bytes = Files.newInputStream(file); DataInputStream in = new DataInputStream(bytes)) {
            in.skipBytes(8);
            int count = in.readUnsignedShort();
            String[] texts = new String[count];
            int[][] pairs = new int[count][];
            Set<Integer> methods = new HashSet<>();
            for (int i = 1; i < count; ++i) {
                int tag = in.readUnsignedByte();
                if (tag == 1) texts[i] = in.readUTF();
                else if (tag == 7) pairs[i] = new int[] {in.readUnsignedShort()};
                else if (tag == 8 || tag == 16 || tag == 19 || tag == 20) in.skipBytes(2);
                else if (tag == 15) in.skipBytes(3);
                else if (tag == 3 || tag == 4) in.skipBytes(4);
                else if (tag == 5 || tag == 6) {
                    in.skipBytes(8);
                    ++i; // these take two places
                } else {
                    pairs[i] = new int[] {in.readUnsignedShort(), in.readUnsignedShort()};
                    if (tag == 10 || tag == 11) methods.add(i);
                }
            }
            Set<String> result = new HashSet<>();
            for (int method : methods) {
                int[] type = pairs[pairs[method][1]];
                result.add(texts[pairs[pairs[method][0]][0]] + "." + texts[type[0]] + texts[type[1]]);
            }
            return result;
        }
    }
}
