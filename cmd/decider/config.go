package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/internal/cmdline"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/llama"
	"gatewright.dev/gatewright/internal/inference/server"
	"gatewright.dev/gatewright/internal/questions"
)

// config is the command line, with a configuration file below it.
type config struct {
	file                     string
	model, sha256, name      string
	aliases                  []string
	library, scratch         string
	threads, contextTokens   int
	temperatures             map[questions.Type]int // in thousandths
	calibratedFor            string                 // fingerprint without temperatures
	readout                  string
	minCoverage              float64
	listen                   string
	plainHTTP, parentStdin   bool
	tokenFile                string
	tlsCert, tlsKey          string
	clientCA                 string
	golden                   server.Golden
	queue, maxBody           int
	requestTimeout           time.Duration
	verifyInterval           time.Duration
	drainDelay, drainTimeout time.Duration
	pprof                    string
	logLevel                 slog.Level
	version                  bool
}

// bind declares the flags. What is not given keeps the value that config has.
func (c *config) bind(fs *flag.FlagSet) {
	fs.StringVar(&c.file, "config", "", "`file` in YAML or JSON with flags by name; the command line outranks it")
	fs.StringVar(&c.model, "model", "", "`file` in GGUF (required)")
	fs.StringVar(&c.sha256, "sha256", "", "SHA-256 that the model file must have, 64 hexadecimal `digits` (required)")
	fs.StringVar(&c.name, "name", "", "`name` by which the model answers (default: the one that the file gives)")
	fs.Func("alias", "further `name` that a request may ask for; may be repeated", func(s string) error {
		c.aliases = append(c.aliases, s)
		return nil
	})
	fs.StringVar(&c.library, "library", "", "`folder` with the engine's shared libraries (required)")
	fs.StringVar(&c.scratch, "scratch", "", "`folder` for the private copy of a model that is too big for memory (default: the copy is in memory)")
	fs.IntVar(&c.threads, "threads", 0, "`number` of CPU threads (default: what the CPU limit of this process allows)")
	fs.IntVar(&c.contextTokens, "context-tokens", 0, "longest prompt in `tokens` (default: what the model was made for, at most 4096)")
	fs.Func("temperature", "fitted temperature of a type of question in thousandths, as `type=number` with noul, choice or score; may be repeated", c.temperature)
	fs.StringVar(&c.calibratedFor, "calibrated-for", "", "`fingerprint`, without temperatures, that the model must have: what the temperatures were fitted for")
	fs.StringVar(&c.readout, "readout", "", "`way` in which answers must be read, LabelLogits or ClassHead; it follows from the file, and another one is the end")
	fs.Float64Var(&c.minCoverage, "min-coverage", inference.DefaultMinCoverage, "least share of `probability` that the offered answers must have together; less is no answer")
	fs.StringVar(&c.listen, "listen", "127.0.0.1:8017", "`address` to listen on; port 0 takes a free one, unix:PATH is a socket for this user alone")
	fs.BoolVar(&c.plainHTTP, "plain-http", false, "allow an address beyond loopback without TLS")
	fs.BoolVar(&c.parentStdin, "parent-stdin", false, "end when standard input ends, so that a child does not outlive its parent")
	fs.StringVar(&c.tokenFile, "token-file", "", "`file` with the bearer tokens that may ask, one a line, a name before it or not; read anew when it changes")
	fs.StringVar(&c.tlsCert, "tls-cert", "", "`file` with the certificate chain in PEM; read anew when it changes")
	fs.StringVar(&c.tlsKey, "tls-key", "", "`file` with its key")
	fs.StringVar(&c.clientCA, "client-ca", "", "`file` with the authority of client certificates, which callers of /v1 then need")
	fs.StringVar(&c.golden.File, "golden", "", "`file` with the golden answers by fingerprint; another answer, or none on record, is the end")
	fs.BoolVar(&c.golden.Record, "golden-record", false, "write the golden answer of a fingerprint that the file does not hold")
	fs.Float64Var(&c.golden.Tolerance, "golden-tolerance", server.DefaultGoldenTolerance, "most that a golden `probability` may differ by, up to 0.2")
	fs.IntVar(&c.queue, "queue", server.DefaultQueue, "`number` of requests that may wait")
	fs.IntVar(&c.maxBody, "max-body", server.DefaultMaxBody, "longest body of a request in `bytes`")
	fs.DurationVar(&c.requestTimeout, "request-timeout", server.DefaultRequestTimeout, "longest `time` of a request, queue included")
	fs.DurationVar(&c.verifyInterval, "verify-interval", server.DefaultVerifyInterval, "`time` after which the loaded bytes are hashed again")
	fs.DurationVar(&c.drainDelay, "drain-delay", 2*time.Second, "`time` for which requests are still taken after readiness has failed")
	fs.DurationVar(&c.drainTimeout, "drain-timeout", server.DefaultDrainTimeout, "`time` in which requests that were taken are answered at the end")
	fs.StringVar(&c.pprof, "pprof", "", "loopback `address` for profiles of this process (default: none)")
	fs.TextVar(&c.logLevel, "log-level", slog.LevelInfo, "least `level` that is logged: debug, info, warn, error")
	fs.BoolVar(&c.version, "version", false, "print the version")
}

var byWireType = map[string]questions.Type{"noul": questions.YesNo, "choice": questions.Choice, "score": questions.Score}

func (c *config) temperature(s string) error {
	name, number, _ := strings.Cut(s, "=")
	milli, err := strconv.Atoi(number)
	kind, ok := byWireType[name]
	if err != nil || !ok || milli < 50 || milli > 20_000 {
		return errors.New("must be noul, choice or score, and a number from 50 to 20000, such as noul=1300")
	}
	if c.temperatures == nil {
		c.temperatures = map[questions.Type]int{}
	}
	c.temperatures[kind] = milli
	return nil
}

// parse reads the command line and the file that it names, and checks both.
func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("decider", flag.ContinueOnError)
	c.bind(fs)
	err := cmdline.ParseFlags(fs, args, "decider serves one pinned model over the wire of typed questions.", stderr)
	switch {
	case err != nil:
		return c, err
	case fs.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case c.version:
		return c, nil
	}
	if err := c.readFile(fs); err != nil {
		return c, err
	}
	return c, c.validate()
}

// readFile sets the flags that a file names and the command line does not.
func (c *config) readFile(fs *flag.FlagSet) error {
	if c.file == "" {
		return nil
	}
	text, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("reading configuration: %w", err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		return fmt.Errorf("reading configuration: %w", err)
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range values {
		if fs.Lookup(name) == nil || name == "config" || name == "version" {
			return fmt.Errorf("reading configuration: %s is no flag that a file may set", name)
		}
		if given[name] {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, item := range list {
			if err := set(fs, name, item); err != nil {
				return fmt.Errorf("reading configuration: %w", err)
			}
		}
	}
	return nil
}

func set(fs *flag.FlagSet, name string, value any) error {
	switch value := value.(type) {
	case string:
		if err := fs.Set(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case bool, float64:
		text := fmt.Sprint(value)
		if f, ok := value.(float64); ok {
			text = strconv.FormatFloat(f, 'f', -1, 64)
		}
		if err := fs.Set(name, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	default:
		return fmt.Errorf("%s: a text, a number, true, false or a list of them is expected", name)
	}
	return nil
}

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (c *config) validate() error {
	positive := func(d time.Duration) bool { return d > 0 }
	switch {
	case c.model == "" || c.library == "":
		return errors.New("-model and -library are required")
	case !digest.MatchString(c.sha256):
		return errors.New("-sha256 is required, as 64 lower-case hexadecimal digits: a model that is not pinned is not served")
	case c.threads < 0 || c.contextTokens < 0:
		return errors.New("-threads and -context-tokens must not be negative")
	case c.queue < 1 || c.maxBody < 1024:
		return errors.New("-queue must be at least 1 and -max-body at least 1024")
	case !positive(c.requestTimeout) || !positive(c.verifyInterval) || !positive(c.drainTimeout) || c.drainDelay < 0:
		return errors.New("times must be above 0, and -drain-delay not below")
	case c.verifyInterval < time.Second:
		return errors.New("-verify-interval must be at least 1s: hashing takes the processor from answers")
	case (c.tlsCert == "") != (c.tlsKey == ""):
		return errors.New("-tls-cert and -tls-key go together")
	case c.clientCA != "" && c.tlsCert == "":
		return errors.New("-client-ca needs -tls-cert")
	case c.golden.Record && c.golden.File == "":
		return errors.New("-golden-record needs -golden")
	case !(c.golden.Tolerance > 0 && c.golden.Tolerance <= 0.2):
		return errors.New("-golden-tolerance must be above 0 and at most 0.2")
	}
	if c.pprof != "" && !cmdline.IsLoopback(c.pprof) {
		return errors.New("-pprof must be a loopback address: profiles can hold what users wrote")
	}
	if err := c.validateModel(); err != nil {
		return err
	}
	if path, ok := socket(c.listen); ok {
		if path == "" || c.tlsCert != "" {
			return errors.New("-listen unix: takes the path of a socket, and no TLS")
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(c.listen); err != nil {
		return errors.New("-listen must be an address with a port, or unix: and a path")
	}
	if c.tlsCert == "" && !c.plainHTTP && !cmdline.IsLoopback(c.listen) {
		return errors.New("-listen beyond loopback needs -tls-cert, or -plain-http if what users write may travel in the clear")
	}
	return nil
}

var fingerprint = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// validateModel checks what the model is compared with once it is loaded.
func (c *config) validateModel() error {
	if c.calibratedFor != "" && !fingerprint.MatchString(c.calibratedFor) {
		return errors.New("-calibrated-for must be sha256: and 64 lower-case hexadecimal digits")
	}
	if !(c.minCoverage > 0 && c.minCoverage <= 1) {
		return errors.New("-min-coverage must be above 0 and at most 1")
	}
	if c.readout != "" && c.readout != string(llama.LabelLogits) && c.readout != string(llama.ClassHead) {
		return fmt.Errorf("-readout must be %s or %s", llama.LabelLogits, llama.ClassHead)
	}
	return nil
}

// socket returns the path of a Unix socket, if that is the address.
func socket(address string) (path string, ok bool) { return strings.CutPrefix(address, "unix:") }
