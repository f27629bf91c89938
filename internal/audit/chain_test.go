package audit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chained builds a sound log of n lines.
func chained(t *testing.T, after Head, n int) []string {
	t.Helper()
	if after.Seq == 0 {
		after.Digest = noDigest
	}
	var lines []string
	for range n {
		var e encoder
		if err := e.record(&Record{Time: noon, ID: "d"}); err != nil {
			t.Fatal(err)
		}
		l := append(appendHead(nil, after.Seq+1, after.Digest), e.buf...)
		after = Head{Seq: after.Seq + 1, Digest: lineDigest(l)}
		lines = append(lines, string(l)+"\n")
	}
	return lines
}

func headOf(line string, seq uint64) Head {
	return Head{Seq: seq, Digest: lineDigest([]byte(strings.TrimSuffix(line, "\n")))}
}

func TestVerify(t *testing.T) {
	l := chained(t, Head{}, 5)
	size := int64(len(l[0]))
	for name, tc := range map[string]struct {
		log         []string
		wantRecords uint64
		want        *Break
	}{
		"an empty log holds": {nil, 0, nil},
		"a sound log holds":  {l, 5, nil},
		"a changed byte shows in the next line": {
			[]string{l[0], strings.Replace(l[1], `"d"`, `"e"`, 1), l[2]}, 2,
			&Break{3, 2 * size, "previous", headOf(strings.Replace(l[1], `"d"`, `"e"`, 1), 2).Digest, headOf(l[1], 2).Digest, 0},
		},
		"a missing line":          {[]string{l[0], l[2]}, 1, &Break{2, size, "sequence", "2", "3", 0}},
		"a missing first line":    {l[1:], 0, &Break{1, 0, "sequence", "1", "2", 0}},
		"a line that comes twice": {[]string{l[0], l[0]}, 1, &Break{2, size, "sequence", "2", "1", 0}},
		"two lines changed round": {[]string{l[0], l[2], l[1]}, 1, &Break{2, size, "sequence", "2", "3", 0}},
		"an empty line":           {[]string{l[0], "\n", l[1]}, 1, &Break{2, size, "line", "an entry of version 1", "something else", 0}},
		"a line of another kind":  {[]string{l[0], "{}\n"}, 1, &Break{2, size, "line", "an entry of version 1", "something else", 0}},
		"a line that is not JSON": {[]string{l[0], strings.Replace(l[1], "}", "", 1)}, 1, &Break{2, size, "line", "an entry of version 1", "something else", 0}},
		"a torn last line":        {[]string{l[0], l[1][:7]}, 1, &Break{2, size, "torn", "a line feed", "7 bytes without one", 0}},
		"a last line without its line feed": {
			[]string{l[0], strings.TrimSuffix(l[1], "\n")}, 1,
			&Break{2, size, "torn", "a line feed", fmt.Sprintf("%d bytes without one", len(l[1])-1), 0},
		},
		"a line without end": {[]string{l[0], strings.Repeat("x", 2*MaxRecord)}, 1, &Break{2, size, "line", "at most 262144 bytes", "more", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Verify(strings.NewReader(strings.Join(tc.log, "")))
			var b *Break
			if err != nil && !errors.As(err, &b) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b); diff != "" {
				t.Errorf("break (-want +got):\n%s", diff)
			}
			want := Summary{Records: tc.wantRecords}
			if n := tc.wantRecords; n > 0 {
				want.Head = headOf(tc.log[n-1], n)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerifyFromContinues(t *testing.T) {
	first := chained(t, Head{}, 3)
	head := headOf(first[2], 3)
	rest := strings.Join(chained(t, head, 2), "")
	got, err := VerifyFrom(strings.NewReader(rest), head)
	if err != nil || got.Records != 2 || got.Head.Seq != 5 {
		t.Errorf("VerifyFrom = %+v, %v", got, err)
	}
	if _, err := VerifyFrom(strings.NewReader(rest), headOf(first[1], 2)); err == nil {
		t.Error("a part holds that does not follow")
	}
	if got, err := VerifyFrom(strings.NewReader(""), head); err != nil || got.Head != head {
		t.Errorf("an empty part = %+v, %v; want the head before it", got, err)
	}
}

// Every single byte counts: no change of a sound log with a kept head goes unseen.
func TestVerifySeesEveryChangedByte(t *testing.T) {
	log := strings.Join(chained(t, Head{}, 3), "")
	sound, err := Verify(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(log) {
		changed := log[:i] + string(log[i]^1) + log[i+1:]
		got, err := Verify(strings.NewReader(changed))
		if err == nil && got.Head == sound.Head {
			t.Fatalf("the change of byte %d is not seen", i)
		}
	}
}
