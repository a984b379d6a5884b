package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/backup"
)

// Root runs commands over SSH as root of a host.
type Root struct {
	Host     string
	instance hostdir.Instance
}

// RootOf returns a Root for a host of the cluster. It runs commands on that host over SSH, as root.
func RootOf(t compile.Topology, host string) Root {
	return Root{host, t.Hosts[host].Instance}
}

// RootOfProvider is like RootOf, but returns an error if the host is not a provider host.
func RootOfProvider(t compile.Topology, host string) (Root, error) {
	for _, p := range t.Providers {
		if slices.Contains(p.Hosts, host) {
			return RootOf(t, host), nil
		}
	}
	return Root{}, fmt.Errorf("cluster %s: host %q is not a provider host: want one of providers.KIND.hosts", t.Name, host)
}

// Backup writes a backup of the provider's state on the host to a file, and returns a description
// of the backup. If path is "-", it writes the backup to out, and printed is true.
func (r Root) Backup(ctx context.Context, path string, out io.Writer) (b *backup.Backup, printed bool, err error) {
	printed, err = atomicfile.Output(path, 0o600, out, func(f *os.File) (err error) {
		if err = r.Run(ctx, nil, f, "state", "backup"); err == nil {
			b, err = backup.Read(f)
		}
		return err
	})
	return b, printed, err
}

// OpenBackup checks that a backup file is complete, and opens it for reading. The caller must close
// it.
func OpenBackup(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err = backup.Read(f); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	} else {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
	}
	return f, err
}

// Run runs the host's flor-provider with the given arguments.
func (r Root) Run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	return AsRoot(ctx, r.Host, in, out, append([]string{r.program()}, args...)...)
}

func (r Root) program() string { return r.instance.Program("flor-provider") }

// unit returns the state of the unit of a kind of provider.
func (r Root) unit(ctx context.Context, kind string) (hostreport.Unit, error) {
	u := hostreport.Unit{Name: r.instance.Unit("provider-" + kind + ".service")}
	var out strings.Builder
	if err := AsRoot(ctx, r.Host, nil, &out, "systemctl", "show", "--property=ActiveState,SubState,StatusText", u.Name); err != nil {
		return u, err
	}
	for line := range strings.Lines(out.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "ActiveState":
			u.Active = value
		case "SubState":
			u.Sub = value
		case "StatusText":
			u.Text = value
		}
	}
	if u.Active == "inactive" { // systemd keeps the text of the process that was stopped
		u.Text = ""
	}
	if u.Active == "" {
		return u, fmt.Errorf("systemctl show %s on %s: found %q, want ActiveState", u.Name, r.Host, out.String())
	}
	return u, nil
}

// newOverSSH returns a client that acts as root of the provider's host. It starts flor-provider
// control there over SSH, which serves the control API on its standard input and output.
func newOverSSH(r Root) *Provider {
	return &Provider{
		Host: r.Host, base: "http://" + r.Host, root: &r,
		http: &http.Client{Transport: &http.Transport{
			DialContext:     func(context.Context, string, string) (net.Conn, error) { return r.dial() },
			MaxConnsPerHost: 1, // each connection is a login
		}},
		explain: func(err error) error {
			var failed *sshError
			if errors.As(err, &failed) {
				return failed
			}
			return err
		},
	}
}

// sshError is the error of a program that failed on a host. It contains the output of the program.
type sshError struct {
	words   []string
	err     error
	problem string
}

func (e *sshError) Unwrap() error { return e.err }

func (e *sshError) Error() string {
	if errors.Is(e.err, exec.ErrNotFound) {
		return e.err.Error() + ": install an SSH client"
	}
	return fmt.Sprintf("ssh %s: %v: %s", strings.Join(e.words, " "), e.err, strings.TrimSpace(e.problem))
}

// AsRoot runs a command on a host over SSH as root.
func AsRoot(ctx context.Context, host string, in io.Reader, out io.Writer, command ...string) error {
	words := append([]string{"root@" + host}, command...)
	cmd := exec.CommandContext(ctx, "ssh", words...)
	var problem strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &problem
	if err := cmd.Run(); err != nil {
		return &sshError{words, err, problem.String()}
	}
	return nil
}

// sshConn is a connection over SSH to the standard input and output of a program. The connection
// ends with the program, and its errors contain the error of the program.
type sshConn struct {
	words   []string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	problem bytes.Buffer
	end     func() error // waits for the end of the program; called once
}

// dial starts the program and returns the connection to it. The program runs until the connection
// is closed, not until a context ends: the context of a dial belongs to one request, and later
// requests may use the same connection.
func (r Root) dial() (net.Conn, error) {
	c := &sshConn{words: []string{"root@" + r.Host, r.program(), "control"}}
	c.cmd = exec.Command("ssh", c.words...)
	c.cmd.Stderr = &c.problem
	c.cmd.WaitDelay = time.Second // a persistent master connection of ssh may keep standard error open
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, &sshError{c.words, err, ""}
	}
	c.end = sync.OnceValue(c.cmd.Wait)
	return c, nil
}

func (c *sshConn) Read(b []byte) (int, error) {
	n, err := c.out.Read(b)
	if n == 0 && err != nil {
		err = c.ended(err)
	}
	return n, err
}

func (c *sshConn) Write(b []byte) (int, error) {
	n, err := c.in.Write(b)
	if err != nil {
		err = c.ended(err)
	}
	return n, err
}

// ended returns the error of the program if the program failed. Otherwise it returns err unchanged.
func (c *sshConn) ended(err error) error {
	if failed := c.end(); failed != nil {
		return &sshError{c.words, failed, c.problem.String()}
	}
	return err
}

// Close ends the ssh program of the connection.
func (c *sshConn) Close() error {
	c.in.Close()
	_ = c.cmd.Process.Kill() // it may have ended already
	_ = c.end()
	return nil
}

func (c *sshConn) LocalAddr() net.Addr              { return sshAddr{} }
func (c *sshConn) RemoteAddr() net.Addr             { return sshAddr{} }
func (c *sshConn) SetDeadline(time.Time) error      { return nil }
func (c *sshConn) SetReadDeadline(time.Time) error  { return nil }
func (c *sshConn) SetWriteDeadline(time.Time) error { return nil }

type sshAddr struct{}

func (sshAddr) Network() string { return "ssh" }
func (sshAddr) String() string  { return "ssh" }
