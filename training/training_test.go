package training_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/models"
	"gatewright.dev/gatewright/training/cases"
)

const public = "../testdata/evalsets/public.jsonl"

var files = []string{"train-benchmarks.jsonl.gz", "train-chains.jsonl.gz", "train-journeys.jsonl.gz", "train-lookups.jsonl.gz", "train-synthetic.jsonl.gz"}

// A case that is scored was not trained on: same words, same tool, same arguments count as the same, whatever went before.
// Rows of the training files that are public cases were left out, and the model file says which these are.
func TestNoPublicCaseWasTrainedOn(t *testing.T) {
	scored, err := cases.ReadFile(public)
	if err != nil || len(scored) != 459 {
		t.Fatalf("%d cases, %v", len(scored), err)
	}
	isScored, isRequest := map[string]bool{}, map[string]bool{}
	for i := range scored {
		isScored[scored[i].Digest()], isRequest[scored[i].UserRequest] = true, true
	}
	var want []string
	for _, file := range files {
		lines := 0
		// Only rows with the words of a public case can be one; reading the others whole would take a minute.
		all, err := cases.ReadFileWhere("data/"+file, func(line []byte) bool {
			lines++
			request, ok := cases.Text(line, "userRequest")
			if !ok {
				t.Fatalf("a line has no userRequest: %.80s", line)
			}
			return isRequest[request]
		})
		if err != nil || lines < 2000 {
			t.Fatalf("%s: %d cases, %v", file, lines, err)
		}
		for i := range all {
			if isScored[all[i].Digest()] {
				want = append(want, all[i].ID)
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, readModel(t).Training.Excluded); diff != "" {
		t.Errorf("public cases among the training rows, and rows that were left out (-want +got):\n%s", diff)
	}
}

// model is what a model file says about its training.
type model struct {
	Training struct {
		Rows     int
		Excluded []string
		Data     map[string]string
	}
}

func readModel(t *testing.T) model {
	t.Helper()
	var m model
	if err := json.Unmarshal(models.Judge, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// The bundled file is the one that training printed, made from the data that lies beside it.
func TestTheModelFileIsTheOneThatWasTrained(t *testing.T) {
	printed, err := os.ReadFile("../models/judge.json.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got := digest(models.Judge); got != strings.TrimSpace(string(printed)) {
		t.Errorf("models/judge.json has %s, training printed %s", got, printed)
	}
	file := readModel(t)
	want := map[string]string{}
	for _, name := range files {
		data, err := os.ReadFile("data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		want[name] = digest(data)
	}
	if diff := cmp.Diff(want, file.Training.Data); diff != "" || file.Training.Rows+len(file.Training.Excluded) != 15061+2503+3900+3880+4050 {
		t.Errorf("trained on %d rows of other data (-want +got):\n%s", file.Training.Rows, diff)
	}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
