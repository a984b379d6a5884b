package own

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/terminal"
)

// nobody is the ID of the account under which the executable runs if this process runs as root.
const nobody = 65534

// maxLog is the largest number of bytes of the executable's standard error that is logged.
const maxLog = 4 << 10

// environment contains all environment variables of the executable except HOME.
var environment = []string{"LANG=C.UTF-8", "PATH=/run/current-system/sw/bin:/usr/local/bin:/usr/bin:/bin"}

// run runs the executable and returns its output. Only one call runs at a time. If the executable
// runs too long or writes too much, its process group is killed.
func (k *Kind) run(ctx context.Context, path string, in []byte, secret string) ([]byte, error) {
	if err := k.take(ctx); err != nil {
		return nil, err
	}
	defer func() { <-k.turn }()
	if err := check(path); err != nil {
		return nil, err
	}
	group := &syscall.SysProcAttr{Setpgid: true}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		group.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(k.Dir, nobody, nobody); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, k.Deadline, fmt.Errorf("no answer within %s", k.Deadline))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &bounded{max: maxAnswer, over: func() { stop(fmt.Errorf("answer: over %d bytes", maxAnswer)) }}
	log := &bounded{max: maxLog}
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = k.Dir, append(environment, "HOME="+k.Dir), group
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), out, log
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = end, time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = end() // what it left behind
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if log.b.Len() > 0 {
		text := strings.ReplaceAll(log.b.String(), secret, "(secret)")
		if log.b.Len() == maxLog { // it may end within the secret
			text = strings.ToValidUTF8(text[:max(len(text)-len(secret), 0)], "") + "…"
		}
		k.Logger.WarnContext(ctx, "the executable wrote on standard error", "kind", k.Name(), "text", terminal.Text(text))
	}
	return out.b.Bytes(), err
}

// take waits until no other call of the executable runs.
func (k *Kind) take(ctx context.Context) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-late.C:
		return hostapi.Errorf(hostapi.CodeBusy, "kind %q answers other requests: request again later", k.Name()).After(patience)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check refuses an executable that other accounts can replace.
func check(path string) error {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return hostapi.Errorf(hostapi.CodeMissing, "executable %q: not on this provider yet: put it there", path)
	}
	if err != nil {
		return err
	}
	owner := int(st.Sys().(*syscall.Stat_t).Uid)
	switch {
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s, want a regular file", st.Mode().Type())
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("mode %04o lets others replace it: chmod 0755 it", st.Mode().Perm())
	case owner != 0 && owner != os.Geteuid():
		return fmt.Errorf("owned by uid %d, who could replace it: chown root it", owner)
	}
	return nil
}

// bounded keeps a number of bytes. If more bytes are written, it calls the function over.
type bounded struct {
	b    bytes.Buffer
	max  int
	over func() // nil to drop them
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.max - b.b.Len(); len(p) > room {
		if b.over != nil {
			b.over()
		}
		b.b.Write(p[:room])
		return len(p), nil
	}
	return b.b.Write(p)
}
