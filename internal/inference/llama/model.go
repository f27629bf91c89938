package llama

import (
	"math"
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/inference/llama/gguf"
)

// Readout is how answers are read from a model.
type Readout string

// The read-outs.
const (
	// LabelLogits reads the scores of the answers' letters as the very next token. Any question can be asked.
	LabelLogits Readout = "LabelLogits"
	// ClassHead reads one number for each built-in question that the model was trained on, all in one go.
	ClassHead Readout = "ClassHead"
)

// architectures are the kinds of models that this binding serves, by the name that the file gives. Others are refused by
// name: what the engine does with a model that it was not tried with ranges from other numbers to the end of the process.
// All generative ones attend to the whole prompt and can be cut back to any token; models with a recurrent state cannot.
var architectures = map[string]Readout{
	"llama": LabelLogits, "gemma": LabelLogits, "gemma2": LabelLogits, "gemma3": LabelLogits, "qwen2": LabelLogits, "qwen3": LabelLogits,
	"smollm3": LabelLogits, "granite": LabelLogits, "olmo2": LabelLogits, "phi3": LabelLogits, "minicpm": LabelLogits,
	"bert": ClassHead,
}

// Limits of what a header may promise. The engine ends the process beyond some of them.
const (
	maxLayers = 512
	maxHeads  = 1 << 10
	maxWidth  = 1 << 17
	maxWindow = 1 << 20
	// minWindow holds a short state and the longest built-in question; MiniLM has exactly that many.
	minWindow = 512
)

// description is what the header says about a model, checked.
type description struct {
	architecture, name           string
	readout                      Readout
	window, layers, width, vocab int
	heads, headsKV               int
	keyWidth, valueWidth         int
	longestWord                  int
	template                     string
	// classes are the labels of a class head in the order of its outputs.
	classes []string
	header  *gguf.Header
	// loadedSize is how many bytes the copy has that is loaded: more than the file where weights are widened.
	loadedSize int64
}

// describe refuses every file that this binding cannot serve and says why.
func describe(h *gguf.Header) (description, error) {
	d := description{header: h, loadedSize: h.Size}
	if size, has := h.Widened(); has {
		d.loadedSize = size
	}
	var ok bool
	if d.architecture, ok = h.String("general.architecture"); !ok || d.architecture == "" {
		return d, refuse(ModelMalformed, "the header names no architecture")
	}
	if err := refuseDecision(h, d.architecture); err != nil {
		return d, err
	}
	if d.readout, ok = architectures[d.architecture]; !ok {
		return d, refuse(ArchitectureNotSupported, "architecture %q", printable(d.architecture))
	}
	if n, ok := h.Int("split.count"); ok && n > 1 {
		return d, refuse(ArchitectureNotSupported, "the model is split into %d files: join them first", n)
	}
	if n, ok := h.Int(d.architecture + ".expert_count"); ok && n > 0 {
		return d, refuse(ArchitectureNotSupported, "a mixture of %d experts", n)
	}
	if err := d.measures(h); err != nil {
		return d, err
	}
	if d.readout == ClassHead {
		return d, d.classHead(h)
	}
	d.template, _ = h.String("tokenizer.chat_template")
	return d, nil
}

// refuseDecision names models that bring a decision interface of their own: their prompt and the way to read them belong to
// it, and with another one they give numbers that mean nothing.
func refuseDecision(h *gguf.Header, architecture string) error {
	kind, ok := h.String(architecture + ".decision.type")
	_, template := h.String("tokenizer.chat_template.systemone")
	if !ok && !template {
		return nil
	}
	if kind == "" {
		kind = "unnamed"
	}
	return refuse(DecisionModelNotSupported, "a decision model of type %q is served by its own engine, not by reading labels", printable(kind))
}

func (d *description) measures(h *gguf.Header) error {
	d.name, _ = h.String("general.name")
	for _, m := range []struct {
		key   string
		to    *int
		limit int
	}{
		{"context_length", &d.window, maxWindow},
		{"block_count", &d.layers, maxLayers},
		{"embedding_length", &d.width, maxWidth},
		{"attention.head_count", &d.heads, maxHeads},
	} {
		n, ok := h.Int(d.architecture + "." + m.key)
		if !ok || n < 1 || n > m.limit {
			return refuse(ModelMalformed, "%s.%s is missing or not between 1 and %d", d.architecture, m.key, m.limit)
		}
		*m.to = n
	}
	d.headsKV, d.keyWidth = d.heads, d.width/d.heads
	optional(h, d.architecture+".attention.head_count_kv", &d.headsKV, maxHeads)
	optional(h, d.architecture+".attention.key_length", &d.keyWidth, maxWidth)
	d.valueWidth = d.keyWidth
	optional(h, d.architecture+".attention.value_length", &d.valueWidth, maxWidth)
	words, ok := h.Array("tokenizer.ggml.tokens")
	if !ok || words.Length < 2 {
		return refuse(ModelMalformed, "the header has no vocabulary")
	}
	d.vocab, d.longestWord = words.Length, max(1, words.Longest)
	return nil
}

func optional(h *gguf.Header, key string, to *int, limit int) {
	if n, ok := h.Int(key); ok && n >= 1 && n <= limit {
		*to = n
	}
}

// classHead reads the labels of an encoder's outputs. Without both labels and weights it makes vectors and no answers.
func (d *description) classHead(h *gguf.Header) error {
	out, ok1 := h.Tensor("cls.output.weight")
	labels, ok2 := h.Array(d.architecture + ".classifier.output_labels")
	if !ok1 || !ok2 || len(labels.Strings) == 0 {
		return refuse(NoClassHead, "an encoder without a class head or without the names of its classes")
	}
	d.classes = labels.Strings
	if last := out.Dimensions[len(out.Dimensions)-1]; len(out.Dimensions) != 2 || last != uint64(len(d.classes)) {
		return refuse(ModelMalformed, "the class head has %d outputs and %d labels", last, len(d.classes))
	}
	return checkClasses(d.classes)
}

// windowFor decides how many tokens a prompt may have: as asked for, else as many as the model has been trained on, up to 4,096.
func (d *description) windowFor(asked int) (int, error) {
	window := asked
	if window == 0 {
		window = min(d.window, DefaultContextTokens)
	}
	if window > d.window || window < minWindow {
		return 0, refuse(WindowTooSmall, "a window of %d tokens; the model has %d and at least %d are needed", window, d.window, minWindow)
	}
	return window, nil
}

// memoryFor estimates what the model takes: the private copy from which the weights are mapped, weights that are laid out
// anew for the CPU, the cache of a whole window in 16-bit numbers, and what is computed at once. How much is laid out anew
// depends on kind of weights and CPU, from nothing to all; all is counted.
func (d *description) memoryFor(window, batch int) uint64 {
	const fixed = 96 << 20 // process, library and its tables
	cache := uint64(d.layers) * uint64(window) * uint64(d.headsKV) * uint64(d.keyWidth+d.valueWidth) * 2
	if d.readout == ClassHead {
		cache = 0
	}
	scores := uint64(d.vocab) * 4 * 4
	activations := uint64(batch) * uint64(d.width) * 4 * 24
	attention := uint64(d.heads) * uint64(batch) * uint64(window) * 4
	return 2*uint64(d.loadedSize) + cache + scores + activations + attention + fixed
}

func (d *description) checkMemory(window, batch int, available uint64) error {
	need := d.memoryFor(window, batch)
	if available == math.MaxUint64 || need <= available {
		return nil
	}
	return refuse(MemoryTooSmall, "the model needs about %d MiB with a window of %d tokens, %d MiB are free", need>>20, window, available>>20)
}

// printable keeps what a file says about itself from running through a log.
func printable(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// Architectures lists the kinds of models that can be served, in alphabetical order.
func Architectures() []string {
	var names []string
	for name := range architectures {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
