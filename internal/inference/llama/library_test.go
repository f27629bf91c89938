package llama

import (
	"os"
	"path/filepath"
	"testing"
)

// libraryOf makes a directory with files of the given content and the pins of the wanted ones.
func libraryOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLibraryIsCheckedBeforeItIsOpened(t *testing.T) {
	const sumOfA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of the letter a
	pins := map[string]string{"libllama.v0.5.0.so": sumOfA, "libggml.v0.5.0.so": sumOfA, "libggml-base.so": sumOfA, "libggml-cpu-zen4.so": sumOfA}
	whole := func(change func(map[string]string)) map[string]string {
		files := map[string]string{
			"libllama.v0.5.0.so": "a", "libggml.v0.5.0.so": "a", "libggml-base.so": "a", "libggml-cpu-zen4.so": "a",
			"libllama.so": "a", "libggml.so": "a", "LICENSE": "anything",
		}
		change(files)
		return files
	}
	tests := map[string]struct {
		change func(map[string]string)
		want   Reason
	}{
		"all of it":                           {func(map[string]string) {}, ""},
		"without variants for other CPUs":     {func(f map[string]string) { delete(f, "libggml-cpu-zen4.so") }, ""},
		"one file that is another":            {func(f map[string]string) { f["libggml-base.so"] = "b" }, LibraryMismatch},
		"one variant that is another":         {func(f map[string]string) { f["libggml-cpu-zen4.so"] = "b" }, LibraryMismatch},
		"a plain name for something else":     {func(f map[string]string) { f["libllama.so"] = "b" }, LibraryMismatch},
		"one file more that would be loaded":  {func(f map[string]string) { f["libggml-evil.so"] = "a" }, LibraryMismatch},
		"a newer release beside the old":      {func(f map[string]string) { f["libllama.v0.6.0.so"] = "a" }, LibraryMismatch},
		"without a file that all of it needs": {func(f map[string]string) { delete(f, "libggml-base.so") }, LibraryMissing},
		"without the plain name":              {func(f map[string]string) { delete(f, "libllama.so") }, LibraryMissing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := checkLibrary(libraryOf(t, whole(tc.change)), pins); ReasonOf(err) != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	if err := checkLibrary(filepath.Join(t.TempDir(), "none"), nil); ReasonOf(err) != LibraryMissing {
		t.Errorf("got %v", err)
	}
}

func TestOneProcessHasOneLibrary(t *testing.T) {
	use(t, smollm2)
	o := options(smollm2)
	o.LibraryDir = t.TempDir()
	if _, err := Open(t.Context(), o); ReasonOf(err) != OptionsWrong {
		t.Errorf("got %v", err)
	}
}

func TestVariantIsWhatWasLoaded(t *testing.T) {
	info := use(t, smollm2).Info()
	if _, pinned := pinnedLibrary["libggml-cpu-"+info.CPUVariant+".so"]; !pinned {
		t.Errorf("variant %q", info.CPUVariant)
	}
}
