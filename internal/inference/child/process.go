package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"gatewright.dev/gatewright/internal/inference"
)

// askEvery is how often a program that has not become ready is asked again.
const askEvery = 20 * time.Millisecond

// maxLine is the longest line of a program that is kept.
const maxLine = 4 << 10

// process is one run of the program.
type process struct {
	options   *Options
	command   *exec.Cmd
	stdin     io.Closer
	transport *http.Transport
	ended     chan struct{} // closed when err is set
	err       error
	last      *lastLine
}

func start(ctx context.Context, o *Options, socket string) (*process, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	p := &process{options: o, ended: make(chan struct{}), last: &lastLine{log: o.Log}, transport: inference.NewTransport()}
	p.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	command := o.Command(socket)
	// Not tied to the context: it is told to end first, and only then made to.
	p.command = exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...) //nolint:gosec // the command is the operator's
	p.command.Env = o.Env
	p.command.Stdout, p.command.Stderr = p.last, p.last
	// A group of its own keeps the interrupt of a terminal from the program, which is told to end after the calls have.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("cannot be started: %w", err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// awaitReady returns a client once the program says that it may be asked.
func (p *process) awaitReady(ctx context.Context) (inference.Decider, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.ReadyWithin)
	defer cancel()
	turn := time.NewTicker(askEvery)
	defer turn.Stop()
	for !p.isReady(ctx) {
		select {
		case <-turn.C:
		case <-p.ended:
			return nil, p.how()
		case <-ctx.Done():
			return nil, errors.New("did not become ready in time")
		}
	}
	return p.options.Client(p.transport)
}

func (p *process) isReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := p.transport.RoundTrip(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// wait returns how the program ended. When the context ends, the program is made to end.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.how()
	case <-ctx.Done():
		return p.end()
	}
}

// end tells the program to end, and after its grace makes it.
func (p *process) end() error {
	_ = p.stdin.Close() // it ends by this too, should the signal be lost
	_ = p.command.Process.Signal(syscall.SIGTERM)
	grace := time.NewTimer(p.options.Grace)
	defer grace.Stop()
	select {
	case <-p.ended:
	case <-grace.C:
		_ = p.command.Process.Kill()
		<-p.ended
	}
	return p.how()
}

// how says in one line how the program ended, with its own last words.
func (p *process) how() error {
	err, last := p.err, p.last.text()
	switch {
	case err == nil && last == "":
		return errors.New("ended without an error")
	case err == nil:
		return fmt.Errorf("ended without an error: %s", last)
	case !isExit(err) || last == "":
		return err
	}
	return fmt.Errorf("%w: %s", err, last)
}

// lastLine keeps the last thing that the program wrote, and sends all of it to the log.
type lastLine struct {
	log  *slog.Logger
	mu   sync.Mutex
	line bytes.Buffer
	last string
}

// Write takes what the program writes.
func (l *lastLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	eachLine(&l.line, b, func(line string) {
		l.last = line
		l.log.Debug("decider process", "output", line)
	})
	return len(b), nil
}

func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// eachLine gathers bytes into lines. What is longer than maxLine is cut: it is for people to read.
func eachLine(pending *bytes.Buffer, b []byte, each func(string)) {
	pending.Write(b)
	for {
		line, err := pending.ReadString('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > maxLine {
				line = line[:maxLine]
			}
			pending.WriteString(line)
			return
		}
		if line = strings.TrimSpace(line); line != "" {
			each(line[:min(len(line), maxLine)])
		}
	}
}
