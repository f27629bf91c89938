package inference

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxReplyDepth is far above what any reply needs: envelope, answers, one answer, its probabilities.
const maxReplyDepth = 24

// decode reads one JSON value and nothing after it: no duplicate names, no invalid UTF-8, no deep nesting, names in their
// exact case. Members that out does not have are ignored.
func decode(body []byte, out any) error {
	if tooDeep(body) {
		return fail(BadReply, "the reply nests too deep")
	}
	if json.Unmarshal(body, out) != nil {
		return fail(BadReply, "the reply is not the expected JSON")
	}
	return nil
}

func tooDeep(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		if _, err := d.ReadToken(); err != nil {
			return !errors.Is(err, io.EOF) && d.StackDepth() > maxReplyDepth
		}
		if d.StackDepth() > maxReplyDepth {
			return true
		}
	}
}

// encode writes a request; what it cannot write is not sent in part.
func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fail(StateUnreadable, "the request cannot be written as JSON")
	}
	return body, nil
}
