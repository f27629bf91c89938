package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The test binary plays the process that dies: childEnv says which part.
const childEnv, childPath = "GATEWRIGHT_AUDIT_CHILD", "GATEWRIGHT_AUDIT_PATH"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "append":
		err = appendForever(os.Getenv(childPath))
	case "limit":
		err = appendBeyondLimit(os.Getenv(childPath))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(part, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+part, childPath+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// appendForever prints the id of every record that Append has called durable.
func appendForever(path string) error {
	f, err := Open(path, Options{})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d/%d/%d", os.Getpid(), w, i)
				if err := f.Append(context.Background(), &Record{Time: time.Now(), ID: id}); err != nil {
					panic(err)
				}
				_, _ = os.Stdout.WriteString(id + "\n")
			}
		})
	}
	wg.Wait()
	return nil
}

func TestKilledAtAnyMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	acknowledged := map[string]bool{}
	for range 6 {
		cmd := child("append", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait := time.Duration(rand.IntN(60)) * time.Millisecond
		lines := bufio.NewScanner(out)
		for first := true; lines.Scan(); first = false {
			acknowledged[lines.Text()] = true
			if first {
				time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
	}
	f := openLog(t, path) // sets a torn end of the last one aside
	mustAppend(t, f, "last")
	closeLog(t, f)
	stand := map[string]bool{}
	for _, id := range ids(entries(t, read(t, path))) {
		if stand[id] && id != "" {
			t.Errorf("%s stands twice", id)
		}
		stand[id] = true
	}
	for id := range acknowledged {
		if !stand[id] {
			t.Errorf("%s was called durable and is not there", id)
		}
	}
	if len(acknowledged) < 6 {
		t.Errorf("only %d records were acknowledged", len(acknowledged))
	}
}

// appendBeyondLimit meets the size limit of its process, which fails writes in
// the middle as a full disk does, and goes on after it was raised.
func appendBeyondLimit(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 10_000, Max: limit.Max}); err != nil {
		return err
	}
	f, err := Open(path, Options{})
	if err != nil {
		return err
	}
	durable := 0
	for ; durable < 1000 && err == nil; durable++ {
		err = f.Append(context.Background(), &Record{ID: fmt.Sprint(durable)})
	}
	if durable--; !errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("after %d records: %v, want ErrUnavailable", durable, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() >= 10_000 {
		return fmt.Errorf("half a record was left: %v, %v", info.Size(), err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := f.Append(context.Background(), &Record{ID: fmt.Sprint(durable)}); err != nil {
		return fmt.Errorf("after the limit was raised: %w", err)
	}
	return f.Close()
}

func TestAFullFileSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if out, err := child("limit", path).Output(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := entries(t, read(t, path))
	want := make([]string, len(all))
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	if diff := cmp.Diff(want, ids(all)); diff != "" || len(all) < 20 {
		t.Errorf("%d records (-want +got):\n%s", len(all), diff)
	}
	if got, err := Verify(bytes.NewReader(read(t, path))); err != nil || got.Recovered != 0 {
		t.Errorf("Verify = %+v, %v", got, err)
	}
}
