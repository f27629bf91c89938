package llama

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/inference/llama/gguf"
	"gatewright.dev/gatewright/internal/questions"

	native "github.com/hybridgroup/yzma/pkg/llama"
)

// changed writes a copy of the first n bytes of a model, all of them if n is 0, in which each old text is a new one of the same length.
func changed(t *testing.T, name string, n int64, oldnew ...string) string {
	t.Helper()
	need(t, model(name))
	f, err := os.Open(model(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n == 0 {
		stat, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		n = stat.Size()
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(f, b); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(oldnew); i += 2 {
		if len(oldnew[i]) != len(oldnew[i+1]) || !bytes.Contains(b, []byte(oldnew[i])) {
			t.Fatalf("%q cannot be replaced", oldnew[i])
		}
		b = bytes.ReplaceAll(b, []byte(oldnew[i]), []byte(oldnew[i+1]))
	}
	return written(t, b)
}

func written(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenRefuses(t *testing.T) {
	need(t, model(smollm2), model(gemma), model(minilm), model(nohead))
	path := func(name string) func(*testing.T) string { return func(*testing.T) string { return model(name) } }
	change := func(name string, n int64, oldnew ...string) func(*testing.T) string {
		return func(t *testing.T) string { return changed(t, name, n, oldnew...) }
	}
	content := func(b []byte) func(*testing.T) string {
		return func(t *testing.T) string { return written(t, b) }
	}
	tests := map[string]struct {
		path func(*testing.T) string
		set  func(*Options)
		want Reason
		// says is part of the message.
		says string
	}{
		"a file that is not there":            {path: path("none.gguf"), want: ModelUnreadable},
		"a directory":                         {path: func(t *testing.T) string { return t.TempDir() }, want: ModelUnreadable},
		"an empty file":                       {path: content(nil), want: NotGGUF},
		"zeros":                               {path: content(make([]byte, 1<<20)), want: NotGGUF},
		"text":                                {path: content([]byte(strings.Repeat("not a model\n", 1000))), want: NotGGUF},
		"a model that was cut in its header":  {path: change(smollm2, 100_000), want: ModelTruncated},
		"a model that was cut in its weights": {path: change(smollm2, 90_000_000), want: ModelTruncated, says: "at least"},
		"another file than the pinned one": {path: path(smollm2), set: func(o *Options) { o.SHA256 = strings.Repeat("0", 64) }, want: ModelHashMismatch,
			says: "got " + smollm2Hash},
		"a hash that is none":                   {path: path(smollm2), set: func(o *Options) { o.SHA256 = "abc" }, want: OptionsWrong},
		"an encoder without a class head":       {path: path(nohead), want: NoClassHead},
		"a class that is no built-in question":  {path: change(minilm, 0, "moves_money", "moves_honey"), want: LabelsNotSupported, says: "moves_honey"},
		"an architecture of another kind":       {path: change(smollm2, 0, "llama", "mamba"), want: ArchitectureNotSupported, says: `"mamba"`},
		"a letter that is not one token":        {path: change(smollm2, 0, "\x01\x00\x00\x00\x00\x00\x00\x00A", "\x01\x00\x00\x00\x00\x00\x00\x00\x07"), want: LabelsNotSupported},
		"a template that cannot be rendered":    {path: change(smollm2, 0, "{% endfor %}", "{% endfoo %}"), want: TemplateNotSupported},
		"a window that the model does not have": {path: path(smollm2), set: func(o *Options) { o.ContextTokens = 9000 }, want: WindowTooSmall, says: "8192"},
		"a window that holds no question":       {path: path(smollm2), set: func(o *Options) { o.ContextTokens = 100 }, want: WindowTooSmall},
		"a temperature of zero":                 {path: path(smollm2), set: func(o *Options) { o.Temperatures = inference.Calibration{questions.YesNo: 1} }, want: OptionsWrong},
		"no library":                            {path: path(smollm2), set: func(o *Options) { o.LibraryDir = "" }, want: OptionsWrong},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(smollm2)
			o.ModelPath = tc.path(t)
			if tc.set != nil {
				tc.set(&o)
			}
			e, err := Open(t.Context(), o)
			if e != nil {
				e.Close()
			}
			if ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// header of a small model that can be served, for changes that no real file shows.
func header(change func(*gguf.Header)) *gguf.Header {
	h := &gguf.Header{Size: 1 << 20, Values: map[string]any{
		"general.architecture": "llama", "llama.context_length": uint64(8192), "llama.block_count": uint64(30), "llama.embedding_length": uint64(576),
		"llama.attention.head_count": uint64(9), "llama.attention.head_count_kv": uint64(3),
		"tokenizer.ggml.tokens": gguf.Array{Length: 49152, Longest: 20},
	}}
	change(h)
	return h
}

func TestDescribeRefuses(t *testing.T) {
	set := func(key string, v any) func(*gguf.Header) { return func(h *gguf.Header) { h.Values[key] = v } }
	tests := map[string]struct {
		change func(*gguf.Header)
		want   Reason
		says   string
	}{
		"nothing about a good header":      {func(*gguf.Header) {}, "", ""},
		"a header without an architecture": {func(h *gguf.Header) { delete(h.Values, "general.architecture") }, ModelMalformed, ""},
		"an architecture with colours":     {set("general.architecture", "ev\x1b[31mil"), ArchitectureNotSupported, `"ev?[31mil"`},
		"a decision model by its type":     {set("llama.decision.type", "openjev"), DecisionModelNotSupported, `"openjev"`},
		"a decision model by its template": {set("tokenizer.chat_template.systemone", "{{ state }}"), DecisionModelNotSupported, `"unnamed"`},
		"a model in several files":         {set("split.count", uint64(3)), ArchitectureNotSupported, "3 files"},
		"a mixture of experts":             {set("llama.expert_count", uint64(8)), ArchitectureNotSupported, "8 experts"},
		"no window":                        {func(h *gguf.Header) { delete(h.Values, "llama.context_length") }, ModelMalformed, "context_length"},
		"layers without end":               {set("llama.block_count", uint64(1<<30)), ModelMalformed, "block_count"},
		"no heads":                         {set("llama.attention.head_count", uint64(0)), ModelMalformed, "head_count"},
		"no vocabulary":                    {set("tokenizer.ggml.tokens", gguf.Array{}), ModelMalformed, "vocabulary"},
		"a number that is a text":          {set("llama.block_count", "30"), ModelMalformed, "block_count"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := describe(header(tc.change))
			if ReasonOf(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestMemoryIsEstimatedBeforeLoading(t *testing.T) {
	d, err := describe(header(func(*gguf.Header) {}))
	if err != nil {
		t.Fatal(err)
	}
	// 30 layers, 4,096 tokens, 3 heads of 64 numbers for keys and as many for values, 2 bytes each.
	const cache = 30 * 4096 * 3 * 128 * 2
	if got := d.memoryFor(4096, d.batch(4096)); got < cache+1<<20 || got > cache+200<<20 {
		t.Errorf("%d bytes, the cache alone takes %d", got, cache)
	}
	if err := d.checkMemory(4096, d.batch(4096), 64<<20); ReasonOf(err) != MemoryTooSmall {
		t.Errorf("got %v", err)
	}
	if err := d.checkMemory(4096, d.batch(4096), 1<<30); err != nil {
		t.Error(err)
	}
	larger := d
	larger.loadedSize += 1000 // its copy, and its weights laid out anew
	if grows := larger.memoryFor(4096, 128) - d.memoryFor(4096, 128); grows != 2000 {
		t.Errorf("a file that is 1000 bytes longer needs %d bytes more, want 2000", grows)
	}
}

func TestHashAndFileOfTheCaller(t *testing.T) {
	need(t, model(minilm))
	f, err := os.Open(model(minilm))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := options(minilm)
	o.ModelPath, o.File, o.PrivateDir = "", f, t.TempDir()
	o.SHA256 = strings.ToUpper("54c6b64baec4495e7993ae7d8f321cf73d1e82d26fc5634f53ecfbe4d3316d4e")
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	info := e.Info()
	if info.SHA256 != strings.ToLower(o.SHA256) || info.Architecture != "bert" || info.Readout != "ClassHead" || info.Threads != 1 || info.ContextTokens != 512 {
		t.Errorf("%+v", info)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	state, q := e.Golden()
	var ee *engine.Error
	if _, err := e.Ask(t.Context(), state, []questions.Question{q}); !errors.As(err, &ee) || ee.Reason != engine.Failed {
		t.Errorf("asking after Close: %v", err)
	}
}

func TestNoTextOfTheStateBecomesAControlToken(t *testing.T) {
	corpus, err := os.ReadFile("testdata/special-tokens.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(corpus)), "\n")
	for _, name := range []string{smollm2, gemma, minilm} {
		t.Run(name, func(t *testing.T) {
			n := use(t, name).network
			for _, line := range append(lines, strings.Join(lines, ""), strings.Join(lines, " and\n")) {
				tokens, err := plainTokens(n, "x "+line+" y")
				var ee *engine.Error
				if name == minilm && errors.As(err, &ee) && ee.Reason == engine.Unreadable {
					continue // its vocabulary lacks a sign
				}
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				want := "x " + line + " y"
				if name == gemma {
					want = strings.ReplaceAll(want, "\u2581", " ") // its vocabulary's own way to write a space
				}
				// An encoder's vocabulary knows no case, so only the others give the text back.
				if got := n.text(tokens); name != minilm && got != want {
					t.Errorf("%q reads as %q", line, got)
				}
				_, tokens, err = stateTokens(n, `{"user_request":"`+line+`"}`)
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				for _, id := range tokens {
					if n.isForbidden(id) || n.isMarker(id) {
						t.Errorf("%q became the token %q", line, n.special(id))
					}
				}
				if text := n.text(tokens); strings.Count(text, "</state>") > 1 {
					t.Errorf("%q closes the state: %q", line, text)
				}
			}
		})
	}
}

func TestBlocksAreThoseOfTheLibrary(t *testing.T) {
	use(t, smollm2)
	for _, kind := range gguf.TypeNumbers() {
		elements, bytes := gguf.BlockOf(kind)
		id := native.GGMLType(kind)
		if got := int(native.GGMLBlockSize(id)); got != elements {
			t.Errorf("type %d has blocks of %d, not %d", kind, got, elements)
		}
		if got := int(native.GGMLTypeSize(id)); got != bytes {
			t.Errorf("type %d has blocks of %d bytes, not %d", kind, got, bytes)
		}
	}
}
