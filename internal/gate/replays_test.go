package gate

import (
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

func TestReplaysAreBounded(t *testing.T) {
	tests := map[string]struct {
		answer []byte
	}{
		"requests whose answers are kept":     {make([]byte, 1000)},
		"requests whose answers are not kept": {nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReplays(10 * replayCost)
			in := &input{review: &review.Request{}}
			in.request.Now = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
			waiting, _ := r.begin(&input{review: &review.Request{UID: "still judged"}, request: in.request})
			for range 1000 {
				in.review = &review.Request{UID: uid(in.request.Now)}
				entry, isFirst := r.begin(in)
				if !isFirst {
					t.Fatal("a new uid was taken for one that is known")
				}
				r.finish(in, entry, test.answer)
			}
			if len(r.order) > 12 || len(r.entries) > 12 {
				t.Errorf("%d places and %d entries are kept", len(r.order), len(r.entries))
			}
			r.finish(&input{review: &review.Request{UID: "still judged"}}, waiting, test.answer)
			in.request.Now = in.request.Now.Add(time.Hour)
			r.makeRoom(in.request.Now)
			if r.bytes != 0 || len(r.order) != 0 || len(r.entries) != 0 {
				t.Errorf("when all have ended, %d bytes, %d places and %d entries are left", r.bytes, len(r.order), len(r.entries))
			}
		})
	}
}

func TestAUIDWithoutALastingAnswerIsJudgedAgain(t *testing.T) {
	r := newReplays(1 << 20)
	in := &input{review: &review.Request{UID: "u"}}
	in.request.Now = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	first, _ := r.begin(in)
	r.finish(in, first, nil)
	second, isFirst := r.begin(in)
	if !isFirst {
		t.Fatal("a request without an answer is remembered")
	}
	r.finish(in, second, []byte("answer"))
	if third, isFirst := r.begin(in); isFirst || string(third.answer) != "answer" {
		t.Error("an answer that stands is not given again")
	}
}
