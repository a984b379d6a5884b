package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/florete/florete/internal/hostdir"
)

// rebuild runs nixos-rebuild switch for a host. The host arms its rollback itself if its
// configuration sets services.florete.confirm. rebuild returns the pending change, or nil if
// the host has no such setting or if nothing changes.
func (d Deployment) rebuild(ctx context.Context, h Host, remote *remote) (*hostdir.Change, error) {
	before, err := remote.pending(ctx)
	if err != nil {
		return nil, err
	}
	if before != nil {
		return nil, fmt.Errorf("%s is pending: run flor status on the host", before)
	}
	args := []string{"switch", "--flake", d.Flake + "#" + h.Name, "--target-host", "root@" + h.Name}
	d.Log(h.Name, "nixos-rebuild "+strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, "nixos-rebuild", args...)
	cmd.Env = append(os.Environ(), "NIX_SSHOPTS="+strings.Join(append(remote.options, os.Getenv("NIX_SSHOPTS")), " "))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%w: nix shell nixpkgs#nixos-rebuild", err)
	}
	if err != nil {
		err = fmt.Errorf("nixos-rebuild: %w: %s", err, lastLine(out.Bytes()))
	}
	pending, unread := remote.pending(ctx)
	if err == nil && pending == nil && unread == nil {
		d.Log(h.Name, "nothing would go back by itself: the system was in force before, or has no services.florete.confirm.enable")
	}
	return pending, errors.Join(err, unread)
}

// pending returns the change that waits for confirmation on a host, or nil if there is none.
func (r *remote) pending(ctx context.Context) (*hostdir.Change, error) {
	out, err := r.run(ctx, nil, fmt.Sprintf("cat %[1]s 2>/dev/null || test ! -e %[1]s", r.state.ChangeFile()))
	if err != nil || len(out) == 0 {
		return nil, err
	}
	c := new(hostdir.Change)
	return c, json.Unmarshal(out, c)
}
