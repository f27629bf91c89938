// Package llama computes answers with a model file: it loads one GGUF through llama.cpp, without cgo, and reads
// probabilities from it. The bytes that are loaded are those that were hashed, the same question about the same state gives
// the same bits whatever was asked before, and a prompt that does not fit is an error and never cut.
//
// A fault in native code ends the process, so it belongs into one of its own.
package llama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/inference/llama/gguf"
	"gatewright.dev/gatewright/internal/questions"
)

// DefaultContextTokens is the longest prompt unless the options say otherwise or the model has less.
const DefaultContextTokens = 4096

// Options say what to load and how to compute.
type Options struct {
	// ModelPath names the file. File is used in its place if it is set, from its beginning; it is not closed.
	ModelPath string
	File      *os.File
	// SHA256 is what the file must have, 64 hexadecimal digits. Empty accepts any file; Info says which it was.
	SHA256 string
	// Name is the name by which the model answers. Default: the one that the file gives.
	Name string
	// LibraryDir holds the shared libraries of llama.cpp.
	LibraryDir string
	// LibrarySHA256s pins them by file name. Default: PinnedLibrary.
	LibrarySHA256s map[string]string
	// PrivateDir is where the private copy of the model goes, as a file without a name. Default: sealed memory.
	PrivateDir string
	// ContextTokens is the longest prompt. Default: what the model has, up to DefaultContextTokens.
	ContextTokens int
	// Threads to compute with. Default: the CPUs that this process really has, never those of the machine.
	Threads int
	// Temperatures are fitted ones, in thousandths, by type of question. Default: 1000.
	Temperatures inference.Calibration
	// MinCoverage is the share of probability that the labels must have together. Default: inference.DefaultMinCoverage.
	MinCoverage float64
}

// Engine is a loaded model. It implements engine.Engine, and answers one request at a time.
type Engine struct {
	info         engine.Info
	description  description
	temperatures inference.Calibration
	minCoverage  float64
	pinned       *pinned
	base         string // the fingerprint without temperatures

	// mu guards what native code works on. After Close network is nil: a call into a freed model would end the process.
	mu       sync.Mutex
	network  *network
	layout   layout
	computed sequence
}

var _ engine.Engine = (*Engine)(nil)

// Open loads a model, or says with a LoadError why not. Reading a large file takes seconds; ctx ends that early.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	source, done, err := o.source()
	if err != nil {
		return nil, err
	}
	defer done()
	d, window, err := inspect(source, o)
	if err != nil {
		return nil, err
	}
	p, err := pin(ctx, source, d.header, o.PrivateDir)
	if err != nil {
		return nil, err
	}
	if want := strings.ToLower(o.SHA256); want != "" && p.sum != want {
		return nil, errors.Join(&LoadError{Reason: ModelHashMismatch, Detail: "the file is not the pinned one", Want: want, Got: p.sum}, p.close())
	}
	e, err := open(o, p, window)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return e, nil
}

func (o Options) validate() error {
	if o.ModelPath == "" && o.File == nil || o.LibraryDir == "" {
		return refuse(OptionsWrong, "a model file and the directory of the library are needed")
	}
	if o.ContextTokens < 0 || o.Threads < 0 || o.Threads > 256 || o.MinCoverage < 0 || o.MinCoverage > 1 {
		return refuse(OptionsWrong, "window, threads or coverage is out of range")
	}
	if o.SHA256 != "" && len(o.SHA256) != 64 {
		return refuse(OptionsWrong, "a SHA-256 has 64 hexadecimal digits")
	}
	for kind, milli := range o.Temperatures {
		if milli < 50 || milli > 20_000 {
			return refuse(OptionsWrong, "the temperature of %s is not between 50 and 20000 thousandths", kind)
		}
	}
	return nil
}

func (o Options) source() (f *os.File, done func(), err error) {
	if o.File != nil {
		return o.File, func() {}, nil
	}
	f, err = os.Open(o.ModelPath)
	if err != nil {
		return nil, nil, refuse(ModelUnreadable, "%v", err)
	}
	return f, func() { f.Close() }, nil //nolint:errcheck // it was only read
}

// inspect reads the header of the original, so that what cannot be served is refused before it is copied.
func inspect(f *os.File, o Options) (description, int, error) {
	stat, err := f.Stat()
	if err != nil {
		return description{}, 0, refuse(ModelUnreadable, "%v", err)
	}
	d, err := readDescription(f, stat.Size())
	if err != nil {
		return d, 0, err
	}
	window, err := d.windowFor(o.ContextTokens)
	if err != nil {
		return d, 0, err
	}
	return d, window, d.checkMemory(window, d.batch(window), resources{root: "/"}.memory())
}

func readDescription(r io.ReaderAt, size int64) (description, error) {
	h, err := gguf.Read(r, size)
	if err != nil {
		return description{}, headerError(err)
	}
	return describe(h)
}

// batch is how many tokens go in at once: an encoder reads all of them together.
func (d *description) batch(window int) int {
	if d.readout == ClassHead {
		return window
	}
	return chunk
}

// open loads from the private copy, whose header is read again: the original may have changed since.
func open(o Options, p *pinned, window int) (*Engine, error) {
	d, err := readDescription(p.file, p.size)
	if err != nil {
		return nil, err
	}
	if window > d.window {
		return nil, refuse(ModelUnreadable, "the file changed while it was read")
	}
	if err := openLibrary(o.LibraryDir, o.LibrarySHA256s); err != nil {
		return nil, err
	}
	e := &Engine{description: d, temperatures: o.Temperatures, minCoverage: o.MinCoverage, pinned: p}
	if e.minCoverage == 0 {
		e.minCoverage = inference.DefaultMinCoverage
	}
	threads := o.Threads
	if threads == 0 {
		threads = resources{root: "/"}.threads()
	}
	if e.network, err = loadModel(p.path()); err != nil {
		return nil, err
	}
	s := shape{window: window, batch: d.batch(window), threads: threads, classHead: d.readout == ClassHead}
	if err := e.prepare(s); err != nil {
		return nil, errors.Join(err, e.network.close())
	}
	e.info = e.describe(o, window, threads)
	e.base = fingerprint(p.sum, libraryIdentity(o.LibrarySHA256s), e.info.Readout, nil)
	return e, nil
}

func (e *Engine) prepare(s shape) error {
	if e.network.words != e.description.vocab {
		return refuse(ModelMalformed, "the engine sees %d words, the header has %d", e.network.words, e.description.vocab)
	}
	if err := e.network.prepare(s); err != nil {
		return err
	}
	if s.classHead {
		return e.network.checkClasses(len(e.description.classes))
	}
	var err error
	e.layout, err = newLayout(e.network, e.description.template)
	return err
}

func (e *Engine) describe(o Options, window, threads int) engine.Info {
	name := o.Name
	if name == "" {
		name = printable(e.description.name)
	}
	return engine.Info{
		Model: name, SHA256: e.pinned.sum, Architecture: e.description.architecture, Readout: string(e.description.readout),
		Library: LibraryVersion, CPUVariant: cpuVariant(), ContextTokens: window, Threads: threads,
		Supports:    e.description.classes,
		Fingerprint: fingerprint(e.pinned.sum, libraryIdentity(o.LibrarySHA256s), string(e.description.readout), e.temperatures),
	}
}

// Info describes what was loaded.
func (e *Engine) Info() engine.Info { return e.info }

// BaseFingerprint is the fingerprint without temperatures: what temperatures are fitted for.
func (e *Engine) BaseFingerprint() string { return e.base }

// Verify hashes the loaded bytes once more. It does not wait for a request that is computed.
func (e *Engine) Verify(ctx context.Context) error { return e.pinned.verify(ctx) }

// Close frees the model. A request that is computed is waited for; later ones fail.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.network == nil {
		return nil
	}
	err := e.network.close()
	e.network = nil
	return errors.Join(err, e.pinned.close())
}

// Ask answers every question or none.
func (e *Engine) Ask(ctx context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.network == nil {
		return engine.Reply{}, &engine.Error{Reason: engine.Failed, Detail: "the engine is closed"}
	}
	if err := ctx.Err(); err != nil {
		return engine.Reply{}, err
	}
	if err := e.readable(state); err != nil {
		return engine.Reply{}, err
	}
	for _, q := range asked {
		if err := q.Validate(); err != nil {
			return engine.Reply{}, &engine.Error{Reason: engine.NotSupported, Question: q.Name, Detail: err.Error()}
		}
	}
	defer e.network.stop.watch(ctx)()
	if e.description.readout == ClassHead {
		return e.askClassHead(ctx, state, asked)
	}
	return e.askLabels(ctx, state, asked)
}

func (e *Engine) temperature(t questions.Type) float64 {
	if milli := e.temperatures[t]; milli != 0 {
		return float64(milli) / 1000
	}
	return 1
}

func failed(err error) error {
	return &engine.Error{Reason: engine.Failed, Detail: fmt.Sprintf("computing: %v", err)}
}
