package llama

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	native "github.com/hybridgroup/yzma/pkg/llama"
)

// LibraryVersion is the release of llama.cpp that the binding is pinned to.
const LibraryVersion = "llama.cpp v0.5.0"

// PinnedLibrary returns the SHA-256 of each shared library that this binding was made for: those of the npm package
// @node-llama-cpp/linux-x64 3.22.1. Another build may load without an error and compute other numbers.
func PinnedLibrary() map[string]string { return maps.Clone(pinnedLibrary) }

var pinnedLibrary = map[string]string{
	"libggml-base.so":               "6c342c8aeb20cb31a18099d6f79de4de6703814d1cfd5c4d754a8643087e486e",
	"libggml-cpu-alderlake.so":      "6527efda35405a0d91574aced4a7766db9bb0494ab6458c83fe9eba755eb76f7",
	"libggml-cpu-cannonlake.so":     "44285a67a31a81a036a70c565d391b31145d835044c03c76cfaa2f90a9d57d42",
	"libggml-cpu-cascadelake.so":    "97cace813fbf7b7a07c4793f6a75b8b2d3de256430620f0be4a15bd4372468ea",
	"libggml-cpu-cooperlake.so":     "5eda284fd8986d550e21623b269dd31d02c07fc70121d3099609d5dde6b6847e",
	"libggml-cpu-haswell.so":        "ddaa96012769f0e86e8670cca374243751880bea2c2d0a4413b3a1b7a29dca74",
	"libggml-cpu-icelake.so":        "9b9c24aaa775fd38a6e1ff082549e50d4138d29f2e2883630b28ab70704ed896",
	"libggml-cpu-ivybridge.so":      "91b27ab81df92b8429c8e3441a8861014d3aec1424f90885a628fd0d4567532f",
	"libggml-cpu-piledriver.so":     "2cb5b2101f5bbefa2416ec7f8b6c6acb177d04f0157989c5d92e4c07750fd3f8",
	"libggml-cpu-sandybridge.so":    "bce17565033835dfb59fae2ed712d4c35e56463c2d49ea61ca08e6e2908bdfd6",
	"libggml-cpu-sapphirerapids.so": "e3d4840632b2242655e1721c6b93ec0370406dded9074accfe90bcfb67bd30b8",
	"libggml-cpu-skylakex.so":       "df30b40a957175cd8e462e8838632dc51e3be7570b27b9526cb7a044263aeab3",
	"libggml-cpu-sse42.so":          "ec65053445506965db5dd9382d7ede084ba639edc55f77aaf73581c778969e02",
	"libggml-cpu-x64.so":            "1174c3c3e0b8722313df561d7ef5ece516a070732cec9b8ddda3667c0b959728",
	"libggml-cpu-zen4.so":           "d84208de33fdadb8921a1a1a34342f5eceb1e58b83648be68050f7557312bd3e",
	"libggml.v0.5.0.so":             "41cd5e6ad78b9f0af31a6f80d637d3168e75ff84db14c495de4d3d9c95607444",
	"libllama.v0.5.0.so":            "2ecd1d85f68456573a664106a9039366b88231579fd65d9669c9a6ab41374fd4",
}

// links are the plain names under which the binding opens three of the libraries.
var links = map[string]string{"libggml.so": "libggml.v0.5.0.so", "libllama.so": "libllama.v0.5.0.so"}

// library is what dlopen leaves behind: a library cannot be opened twice or closed, so this is a fact of the process
// and not of one engine.
var library struct {
	sync.Mutex
	directory string
}

// openLibrary checks every file of the directory that could be loaded, then loads. Another directory in the same process is refused.
func openLibrary(directory string, pins map[string]string) error {
	library.Lock()
	defer library.Unlock()
	directory, err := filepath.Abs(directory)
	if err != nil {
		return refuse(LibraryMissing, "%v", err)
	}
	if library.directory != "" {
		if library.directory != directory {
			return refuse(OptionsWrong, "this process has loaded its library from another directory")
		}
		return nil
	}
	if err := checkLibrary(directory, pins); err != nil {
		return err
	}
	if err := load(directory); err != nil {
		return err
	}
	library.directory = directory
	return nil
}

// load opens the libraries. The engine takes one more backend from a variable of the environment, unchecked: refused.
func load(directory string) error {
	if os.Getenv("GGML_BACKEND_PATH") != "" {
		return refuse(LibraryMismatch, "GGML_BACKEND_PATH names a library that is not pinned: unset it")
	}
	if err := native.Load(directory); err != nil {
		return refuse(LibraryMissing, "opening the library: %v", err)
	}
	native.LogSet(native.LogSilent())
	native.Init()
	if native.GGMLBackendDeviceCount() == 0 {
		return refuse(LibraryMissing, "no library for this CPU")
	}
	return checkMapped(directory)
}

// checkLibrary hashes every shared library in the directory, since the engine opens by pattern whatever lies there.
func checkLibrary(directory string, pins map[string]string) error {
	if len(pins) == 0 {
		pins = pinnedLibrary
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return refuse(LibraryMissing, "%v", err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		if !strings.Contains(name, ".so") {
			continue
		}
		if target, isLink := links[name]; isLink {
			name = target
		}
		if err := checkFile(filepath.Join(directory, e.Name()), name, pins[name]); err != nil {
			return err
		}
		found[e.Name()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		// A build may leave out variants for other CPUs, but not what every one of them needs.
		if !found[name] && !strings.HasPrefix(name, "libggml-cpu-") {
			return refuse(LibraryMissing, "%s is not in %s", name, directory)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if !found[name] {
			return refuse(LibraryMissing, "%s is not in %s: it links to %s", name, directory, links[name])
		}
	}
	return nil
}

func checkFile(path, name, want string) error {
	if want == "" {
		return refuse(LibraryMismatch, "%s is no part of %s", name, LibraryVersion)
	}
	f, err := os.Open(path)
	if err != nil {
		return refuse(LibraryMissing, "%v", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return refuse(LibraryMissing, "reading %s: %v", name, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return &LoadError{Reason: LibraryMismatch, Detail: name, Want: want, Got: got}
	}
	return nil
}

// checkMapped looks at what the loader really took: a variable such as LD_LIBRARY_PATH sends it elsewhere.
func checkMapped(directory string) error {
	mapped, err := mappedLibraries()
	if err != nil {
		return refuse(LibraryMissing, "looking at what was loaded: %v", err)
	}
	home, err := filepath.EvalSymlinks(directory)
	if err != nil {
		return refuse(LibraryMissing, "%v", err)
	}
	for _, path := range mapped {
		if filepath.Dir(path) != home {
			return refuse(LibraryMismatch, "%s was loaded from %s and not from %s", filepath.Base(path), filepath.Dir(path), home)
		}
	}
	return nil
}

// mappedLibraries lists the engine's libraries that this process has mapped, each once.
func mappedLibraries() ([]string, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	found := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		_, path, ok := strings.Cut(lines.Text(), "/")
		base := filepath.Base(path)
		if ok && (strings.HasPrefix(base, "libggml") || strings.HasPrefix(base, "libllama")) {
			found["/"+path] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), lines.Err()
}

// cpuVariant names the instruction set that the engine chose, by the library that it took.
func cpuVariant() string {
	mapped, err := mappedLibraries()
	if err != nil {
		return "unknown"
	}
	for _, path := range mapped {
		if variant, ok := strings.CutPrefix(filepath.Base(path), "libggml-cpu-"); ok {
			return strings.TrimSuffix(variant, ".so")
		}
	}
	return "unknown"
}

// libraryIdentity stands for the library in a fingerprint: version and every pinned file but the variants of the CPU,
// of which each machine takes another one.
func libraryIdentity(pins map[string]string) string {
	if len(pins) == 0 {
		pins = pinnedLibrary
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		fmt.Fprintf(&b, "%s=%s ", name, pins[name])
	}
	return LibraryVersion + " " + b.String()
}
