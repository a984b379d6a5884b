package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/unixsock"
)

// Environment variables of sshd(8) and ssh(1), and of the recorder's own.
const (
	connectionVariable = "SSH_CONNECTION"       // addresses and ports of the connection
	commandVariable    = "SSH_ORIGINAL_COMMAND" // what the person asked for; not set for a shell
	terminalVariable   = "SSH_TTY"
)

// Notice tells a person with a terminal that the session is recorded.
const Notice = "This session is recorded."

// Run runs the session that sshd has started this process for, and records it through the recorder
// that listens on the socket. It uses the environment and the standard files of this process, and
// returns the exit status of the person's shell or command. If the session cannot be recorded, Run
// returns an error, and has started nothing.
func Run(ctx context.Context, socket string) (status int, err error) {
	h, err := announce()
	if err != nil {
		return 0, err
	}
	shell, err := command(h)
	if err != nil {
		return 0, err
	}
	l, err := dial(ctx, socket, h)
	if err != nil {
		return 0, fmt.Errorf("this service records sessions, and this one cannot be recorded: %w", err)
	}
	if l == nil { // not recorded
		shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, os.Stdout, os.Stderr
		return exitStatus(shell.Run())
	}
	defer l.conn.Close()
	if h.Terminal {
		status, err = l.terminal(shell)
	} else {
		status, err = l.plain(shell)
	}
	if lost := l.exit(status); lost != nil {
		return 0, fmt.Errorf("the session ended, since it could no longer be recorded: %w", lost)
	}
	return status, err
}

// announce describes the session of this process.
func announce() (h hello, err error) {
	words := strings.Fields(os.Getenv(connectionVariable))
	if len(words) == 4 {
		if h.From, err = endpoint(words[0], words[1]); err == nil {
			h.To, err = endpoint(words[2], words[3])
		}
	}
	if err != nil || !h.To.IsValid() {
		return h, fmt.Errorf("%s=%q: want the addresses of a connection: sshd runs this command", connectionVariable, os.Getenv(connectionVariable))
	}
	h.Command = os.Getenv(commandVariable)
	if h.Terminal = os.Getenv(terminalVariable) != ""; h.Terminal {
		h.Term = os.Getenv("TERM")
		h.Width, h.Height = size(os.Stdin)
	}
	return h, nil
}

func endpoint(address, port string) (netip.AddrPort, error) {
	return netip.ParseAddrPort(net.JoinHostPort(address, port))
}

// sftpServers lists where distributions have the program behind the subsystem sftp. sshd names it
// internal-sftp if it would serve files itself, which it cannot if the session runs a command.
var sftpServers = []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server", "/run/current-system/sw/libexec/sftp-server"}

// command returns the person's shell or command, as sshd would run it.
func command(h hello) (*exec.Cmd, error) {
	shell := os.Getenv("SHELL")
	if shell == "" {
		return nil, errors.New("SHELL is not set: sshd runs this command")
	}
	line := h.Command
	if name, options, _ := strings.Cut(line, " "); name == "internal-sftp" {
		at := slices.IndexFunc(sftpServers, func(path string) bool { _, err := os.Stat(path); return err == nil })
		if at < 0 {
			return nil, errors.New("no sftp-server in the usual places: name it in sshd_config, as Subsystem sftp")
		}
		line = sftpServers[at] + " " + options
	}
	cmd := exec.Command(shell, "-c", line)
	if h.Command == "" {
		cmd.Args = []string{"-" + shell[strings.LastIndexByte(shell, '/')+1:]} // a login shell
	}
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, commandVariable+"=") || strings.HasPrefix(v, "SHLVL=")
	})
	return cmd, nil
}

// exitStatus returns the exit status of a command from the error of exec.Cmd.Wait. A command that was
// killed by a signal has the status that shells give it.
func exitStatus(err error) (int, error) {
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return 0, err
	}
	if s := failed.Sys().(syscall.WaitStatus); s.Signaled() {
		return 128 + int(s.Signal()), nil
	}
	return failed.ExitCode(), nil
}

// line is a connection to the recorder for one session.
type line struct {
	conn    net.Conn
	answers *json.Decoder

	mu   sync.Mutex // held while a frame is written
	left int        // bytes that may still be recorded

	lost chan struct{} // closed when the recorder has confirmed or ended the recording
	end  answer        // valid once lost is closed
	err  error         // likewise
}

// dial announces the session to the recorder. It returns nil if the service does not record.
func dial(ctx context.Context, socket string, h hello) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*greeting)
	defer cancel()
	conn, err := unixsock.Dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	l := &line{conn: conn, answers: json.NewDecoder(conn), left: math.MaxInt, lost: make(chan struct{})}
	if !h.Terminal {
		l.left = recording.MaxPlain
	}
	_ = conn.SetDeadline(time.Now().Add(2 * greeting))
	var a answer
	if err = json.NewEncoder(conn).Encode(h); err == nil {
		err = l.answers.Decode(&a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil || !a.Recorded {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	go func() {
		defer close(l.lost)
		l.err = l.answers.Decode(&l.end)
	}()
	return l, nil
}

// send sends a frame to the recorder.
func (l *line) send(kind byte, content []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.conn.Write(frame{kind, content}.bytes())
	return err
}

// exit tells the recorder how the session ended, and waits until the recording is on disk.
func (l *line) exit(status int) error {
	err := l.send(frameExit, numbers(status))
	<-l.lost
	switch {
	case l.end.Complete:
		return nil
	case l.end.Error != "":
		return errors.New(l.end.Error)
	case err != nil:
		return err
	case l.err == io.EOF:
		return errors.New("the recorder stopped")
	}
	return l.err
}

// plain runs a command without a terminal. It records the beginning of what the command writes.
func (l *line) plain(cmd *exec.Cmd) (int, error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &tee{l, os.Stdout}, &tee{l, os.Stderr}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-l.lost:
			_ = cmd.Process.Kill()
		case <-done:
		}
	}()
	err := cmd.Wait()
	close(done)
	return exitStatus(err)
}

// tee passes the output of a command on, and its beginning to the recorder first.
type tee struct {
	*line
	to io.Writer
}

func (t *tee) Write(p []byte) (int, error) {
	t.mu.Lock()
	n := min(t.left, len(p))
	t.left -= n
	t.mu.Unlock()
	for rest := p[:n]; len(rest) > 0; {
		part := rest[:min(maxFrame, len(rest))]
		if err := t.send(frameOutput, part); err != nil {
			return 0, err
		}
		rest = rest[len(part):]
	}
	return t.to.Write(p)
}
