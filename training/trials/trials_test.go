package trials_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/training/cases"
)

// about is what a run says of the rows that trained the reader.
type about struct {
	Rows     int
	Excluded []string
	Data     map[string]string
}

// The reader is measured on public cases, so none may have trained it: generated rows that are one were left out, and so was
// all that was made from the tools of a public source. What was generated since is no part of what was measured.
func TestTheReaderSawNoPublicCase(t *testing.T) {
	scored, err := cases.ReadFile("../../testdata/evalsets/public.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	isScored, isRequest := map[string]bool{}, map[string]bool{}
	for i := range scored {
		isScored[scored[i].Digest()], isRequest[scored[i].UserRequest] = true, true
	}
	want := about{Data: map[string]string{}}
	for _, name := range []string{"train-synthetic.jsonl.gz", "train-lookups.jsonl.gz", "train-journeys.jsonl.gz", "train-chains.jsonl.gz"} {
		data, err := os.ReadFile("../data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		want.Data[name] = hex.EncodeToString(sum[:])
		// Only rows with the words of a public case can be one; the others are counted and not read whole.
		same, err := cases.ReadFileWhere("../data/"+name, func(line []byte) bool {
			source, hasSource := cases.Text(line, "source")
			request, hasRequest := cases.Text(line, "userRequest")
			if !hasSource || !hasRequest {
				t.Fatalf("a line has no source or no userRequest: %.80s", line)
			}
			if !strings.HasPrefix(source, "apollo") {
				want.Rows++
			}
			return isRequest[request]
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range same {
			if isScored[same[i].Digest()] {
				want.Excluded = append(want.Excluded, same[i].ID)
				if !strings.HasPrefix(same[i].Source, "apollo") {
					want.Rows--
				}
			}
		}
	}
	var got about
	said, err := os.ReadFile("reader.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(said, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what trained the reader (-want +got):\n%s", diff)
	}
}
