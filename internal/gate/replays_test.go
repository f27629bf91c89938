package gate

import (
	"fmt"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
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
			if r.order.Len() > 12 || len(r.entries) > 12 {
				t.Errorf("%d places and %d entries are kept", r.order.Len(), len(r.entries))
			}
			r.finish(&input{review: &review.Request{UID: "still judged"}}, waiting, test.answer)
			in.request.Now = in.request.Now.Add(time.Hour)
			r.makeRoom(in.request.Now)
			if r.bytes != 0 || r.order.Len() != 0 || len(r.entries) != 0 {
				t.Errorf("when all have ended, %d bytes, %d places and %d entries are left", r.bytes, r.order.Len(), len(r.entries))
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

// A tenant who sends as much as it likes makes the gate forget its own answers, and none of another tenant's.
func TestATenantCannotPushOutAnswersOfAnother(t *testing.T) {
	const size = 1000
	r := newReplays(20 * (replayCost + size))
	now := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	send := func(namespace, account, uid string) (isFirst bool) {
		in := &input{review: &review.Request{UID: uid}, caller: policy.Caller{Namespace: namespace, ServiceAccount: account}}
		in.request.Now = now
		entry, isFirst := r.begin(in)
		if isFirst {
			r.finish(in, entry, make([]byte, size))
		}
		return isFirst
	}
	for i := range 5 {
		send("shop", "agent", fmt.Sprint("shop", i))
	}
	for i := range 1000 {
		send("flood", fmt.Sprint("agent", i%30), fmt.Sprint("flood", i))
	}
	for i := range 5 {
		if send("shop", "agent", fmt.Sprint("shop", i)) {
			t.Errorf("answer %d of another tenant is forgotten", i)
		}
	}
	if !send("flood", "agent0", "flood0") {
		t.Error("the first answer of who fills the memory is still there")
	}
	if r.bytes > 21*(replayCost+size) || r.order.Len() != len(r.entries) {
		t.Errorf("%d bytes, %d places, %d entries", r.bytes, r.order.Len(), len(r.entries))
	}
}
