// Package local runs the hosts of a cluster on this machine, for tests and for the demo. Each host
// has its own files, processes and loopback address.
package local

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// Limit is the time limit of an operation that usually takes a second or two. It is long enough for
// a slow or busy machine.
const Limit = kit.Patience

// Host is a host of a cluster for a test or a demo: its processes run on this machine, without
// isolation. Its files are in the directory Dir, and its programs in the directory Bin.
type Host struct {
	Name, Dir, Bin string
	Manifest       document.Manifest // manifest in the documents that were deployed last
	TPM            string            // socket of its TPM; empty if it has none

	mu      sync.Mutex
	running map[string]*process
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// Layout returns the state directory of the host.
func (h *Host) Layout() hostdir.Layout { return hostdir.Layout(filepath.Join(h.Dir, "state")) }
func (h *Host) Closure() string        { return filepath.Join(h.Dir, "closure") }
func (h *Host) HostKey() string        { return filepath.Join(h.Dir, "ssh_host_ed25519_key") }
func (h *Host) Socket() string         { return filepath.Join(h.Dir, "agent.sock") }
func (h *Host) Refetch() string        { return filepath.Join(h.Dir, "refetch") }
func (h *Host) Log(part string) string { return filepath.Join(h.Dir, part+".log") }

// Deploy gives the host a new directory of documents, as nixos-rebuild switch does on a NixOS host.
func (h *Host) Deploy(documents string) error {
	d, err := document.Read(documents, document.DocManifest)
	if err != nil {
		return err
	}
	h.Manifest = d.Manifest()
	tmp := h.Closure() + ".new"
	_ = os.Remove(tmp)
	if err := os.Symlink(documents, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, h.Closure())
}

// Start starts a program on the host, as the part with the given name, such as "agent". The program
// and its arguments are in args, and the program is in the directory Bin. Its output is appended to
// the file Log(part). If the part is already running, Start stops it first.
func (h *Host) Start(part string, args ...string) error {
	if err := h.Stop(part, syscall.SIGTERM); err != nil {
		return err
	}
	log, err := os.OpenFile(h.Log(part), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(h.Bin, args[0]), args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := onThread(cmd.Start); err != nil {
		return err
	}
	p := &process{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		h.running = map[string]*process{}
	}
	h.running[part] = p
	return nil
}

// starts returns a channel for functions that start processes. The functions run on a thread that
// never ends, because the kernel kills these processes when the thread that started them ends.
var starts = sync.OnceValue(func() chan func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

func onThread(f func() error) error {
	done := make(chan error)
	starts() <- func() { done <- f() }
	return <-done
}

// PID returns the process ID of a running part of the host.
func (h *Host) PID(part string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[part].cmd.Process.Pid
}

// Stop sends a signal to a part of the host, which is a process that Start has started, and waits
// until it has ended. If that takes longer than Limit, Stop kills the process and returns an error.
// If the part is not running, Stop does nothing.
func (h *Host) Stop(part string, sig syscall.Signal) error {
	h.mu.Lock()
	p := h.running[part]
	delete(h.running, part)
	h.mu.Unlock()
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
		return nil
	case <-time.After(Limit):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s: %s did not end within %s of %s; see %s", h.Name, part, Limit, sig, h.Log(part))
	}
}

func (h *Host) activateArgs(more ...string) []string {
	args := []string{"flor", "activate", "--closure", h.Closure(), "--state", string(h.Layout()), "--refetch", h.Refetch(),
		"--ssh-host-key", h.HostKey(), "--hook", filepath.Join(h.Dir, "hook"),
		"--undivided", "--backoff-initial", "200ms", "--backoff-max", "2s", "--agent-socket", h.Socket()}
	if h.TPM != "" {
		args = append(args, "--tpm", h.TPM)
	}
	return append(args, more...)
}

// Activate starts the activation process on the host, with the same arguments as its systemd unit.
func (h *Host) Activate() error { return h.Start("activate", h.activateArgs()...) }

func (h *Host) Agent() error {
	return h.Start("agent", "flor", "agent", "run", "--state", string(h.Layout()), "--socket", h.Socket())
}

// Provide starts provider processes on the host, one for each of the given kinds of need.
func (h *Host) Provide(kinds ...string) error {
	for _, kind := range kinds {
		if err := h.Start(ProviderPart(kind), "flor-provider", "run", kind, "--settings", filepath.Join(h.Dir, "provider.hujson")); err != nil {
			return err
		}
	}
	return nil
}

// ProviderPart returns the name of the provider process for a kind of need. Pass the name to Start
// and Stop.
func ProviderPart(kind string) string { return "provider-" + kind }

// Once runs activation until it has requested each due certificate or secret once, and returns the
// exit status and the output. An exit status other than zero is not an error.
func (h *Host) Once(ctx context.Context) (int, string, error) {
	args := h.activateArgs("--once")
	cmd := exec.CommandContext(ctx, filepath.Join(h.Bin, args[0]), args[1:]...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), string(out), err
}

// Needs returns the states of all certificates and secrets (needs) in the host's manifest, by the
// ID of the need.
func (h *Host) Needs() (map[string]hostdir.NeedState, error) {
	all := map[string]hostdir.NeedState{}
	for _, n := range h.Manifest.Needs {
		s, err := h.Layout().NeedState(n.ID)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		if s.State == "" {
			s.State = hostdir.NeedWaiting
		}
		all[n.ID] = s
	}
	return all, nil
}

// Unfulfilled returns an error that lists those needs of the host that are not complete: the host
// has no answer yet, or has not restarted the units that use the answer. If all needs are complete,
// it returns nil.
func (h *Host) Unfulfilled() error {
	all, err := h.Needs()
	errs := []error{err}
	for _, n := range h.Manifest.Needs {
		switch s := all[n.ID]; {
		case s.State != hostdir.NeedFulfilled && s.Error != nil:
			errs = append(errs, fmt.Errorf("%s %s: %s: %s: %s", h.Name, n.ID, s.State, s.Error.Code, s.Error.Message))
		case s.State != hostdir.NeedFulfilled:
			errs = append(errs, fmt.Errorf("%s %s: %q", h.Name, n.ID, s.State))
		case len(n.OnChange) > 0 && s.NotifiedGeneration == 0:
			errs = append(errs, fmt.Errorf("%s %s: its units have not been notified", h.Name, n.ID))
		}
	}
	return errors.Join(errs...)
}

// Fulfilled reports whether Unfulfilled returns nil.
func (h *Host) Fulfilled() bool { return h.Unfulfilled() == nil }

// Requesting reports whether the host has sent a request for a certificate or secret, and waits for
// the answer.
func (h *Host) Requesting() bool {
	return slices.ContainsFunc(h.Manifest.Needs, func(n document.Need) bool {
		return exists(filepath.Join(h.Layout().Need(n.ID), "pending.json"))
	})
}

// Value returns the content of a file that activation has written on the host for a need.
func (h *Host) Value(need, file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(hostdir.Current(h.Layout().Need(need)), file))
	return string(b), err
}

// SVID returns the certificate and the private key that activation has written on the host for a
// need.
func (h *Host) SVID(need string) (*tls.Certificate, error) {
	i := slices.IndexFunc(h.Manifest.Needs, func(n document.Need) bool { return n.ID == need })
	id, err := h.Manifest.Needs[i].CertID()
	if err != nil {
		return nil, err
	}
	svid, err := hostdir.LoadSVID(h.Layout().Need(need), id)
	if err != nil {
		return nil, err
	}
	return &svid.Cert, nil
}

// Ended returns those parts of the host that have ended although Stop was not called for them. The
// value for a part is the last line of its output.
func (h *Host) Ended() map[string]string {
	last := map[string]string{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for part, p := range h.running {
		select {
		case <-p.done:
			log, _ := os.ReadFile(h.Log(part))
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			last[part] = lines[len(lines)-1]
		default:
		}
	}
	return last
}
