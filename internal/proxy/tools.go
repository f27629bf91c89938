package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"

	"gatewright.dev/gatewright/internal/strictjson"
)

// maxTools is how many tools are remembered. A server that names more is no longer watched beyond these.
const maxTools = 4096

// toolWatch remembers what a tool server says of its tools. A description that changes later can be an attempt to
// talk a model into something; it is passed, counted and logged, since a policy judges calls and not descriptions.
type toolWatch struct {
	log      *slog.Logger
	maxBytes int
	changed  func() // counts a change
	unread   func() // counts a listing that could not be looked at

	mu    sync.Mutex
	tools map[string]seenTool
}

type seenTool struct {
	digest    string
	hasOutput bool
}

func newToolWatch(log *slog.Logger, maxBytes int) *toolWatch {
	return &toolWatch{log: log, maxBytes: maxBytes, tools: map[string]seenTool{}, changed: func() {}, unread: func() {}}
}

// declaresOutput says whether a tool was listed with a schema of its output.
func (t *toolWatch) declaresOutput(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tools[name].hasOutput
}

// follow looks at a listing while it streams past.
func (t *toolWatch) follow(answer *http.Response) {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Encoding") != "" {
		t.unread()
		return
	}
	answer.Body = &follower{ReadCloser: answer.Body, watch: t, isStream: media == "text/event-stream"}
}

// follower keeps a copy of what is read, up to a bound, and hands it over at the end.
type follower struct {
	io.ReadCloser
	watch    *toolWatch
	isStream bool
	copied   bytes.Buffer
	isOver   bool
	isLong   bool
}

func (f *follower) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if f.copied.Len()+n > f.watch.maxBytes {
		f.isLong = true
	} else {
		f.copied.Write(p[:n])
	}
	if err != nil {
		f.end()
	}
	return n, err
}

func (f *follower) Close() error {
	f.end()
	return f.ReadCloser.Close()
}

func (f *follower) end() {
	if f.isOver {
		return
	}
	f.isOver = true
	messages := [][]byte{f.copied.Bytes()}
	if f.isStream {
		messages = events(f.copied.Bytes())
	}
	found := false
	for _, message := range messages {
		found = f.watch.look(message) || found
	}
	if !found || f.isLong {
		f.watch.unread()
	}
}

// events gives the data of each server-sent event.
func events(stream []byte) [][]byte {
	var out [][]byte
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(stream))
	for event := range strings.SplitSeq(text, "\n\n") {
		var data []string
		for line := range strings.SplitSeq(event, "\n") {
			if value, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
		if len(data) > 0 {
			out = append(out, []byte(strings.Join(data, "\n")))
		}
	}
	return out
}

// look remembers the tools of a message, and says whether it lists any.
func (t *toolWatch) look(message []byte) bool {
	var listing struct {
		Result struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(message, &listing) != nil || listing.Result.Tools == nil {
		return false
	}
	for _, raw := range listing.Result.Tools {
		if !t.see(raw) {
			t.unread()
		}
	}
	return true
}

// see compares one tool with what was first said of it.
func (t *toolWatch) see(raw []byte) bool {
	tree, err := strictjson.Parse(raw, strictjson.Limits{MaxBytes: t.maxBytes, MaxDepth: 128, MaxKeys: 1 << 16})
	if err != nil {
		return false
	}
	tool, isObject := tree.(map[string]any)
	name, isText := tool["name"].(string)
	if !isObject || !isText {
		return false
	}
	delete(tool, "_meta") // is for programs, and may say something new each time
	digest, err := strictjson.Digest(tool)
	if err != nil {
		return false
	}
	_, hasOutput := tool["outputSchema"]
	t.mu.Lock()
	defer t.mu.Unlock()
	first, known := t.tools[name]
	switch {
	case !known && len(t.tools) < maxTools:
		t.tools[name] = seenTool{digest: digest, hasOutput: hasOutput}
	case known && first.digest != digest:
		t.tools[name] = seenTool{digest: digest, hasOutput: hasOutput}
		t.changed()
		t.log.Warn("tool is not described as before", "tool", plainName(name), "was", first.digest, "is", digest)
	}
	return true
}
