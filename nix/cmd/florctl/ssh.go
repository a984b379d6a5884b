package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os/exec"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/auditlog"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
)

// overSSH is a provider on a host where the operator is root.
type overSSH struct {
	host     string
	topology compile.Topology
}

func (o overSSH) Versions(ctx context.Context) (all []archive.Version, err error) {
	var out bytes.Buffer
	if err := o.run(ctx, nil, &out, "versions", "--json"); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		return nil, fmt.Errorf("versions of %s: %w", o.host, err)
	}
	return all, nil
}

func (o overSSH) Reports(ctx context.Context) (all map[string]hostreport.Kept, err error) {
	var out bytes.Buffer
	if err := o.run(ctx, nil, &out, "reports"); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		return nil, fmt.Errorf("reports of %s: %w", o.host, err)
	}
	return all, nil
}

func (o overSSH) Export(ctx context.Context, serial int64, w io.Writer) error {
	return o.run(ctx, nil, w, "export", strconv.FormatInt(serial, 10))
}

func (o overSSH) Import(ctx context.Context, r io.Reader, how importing) (string, error) {
	var out strings.Builder
	args := []string{"import"}
	if how.atOnce {
		args = append(args, "--at-once")
	}
	err := o.run(ctx, r, &out, args...)
	return o.host + ": " + strings.TrimSpace(out.String()), err
}

func (o overSSH) Rollout(ctx context.Context, act advance.Act) (s advance.Status, err error) {
	var out bytes.Buffer
	if err := o.run(ctx, nil, &out, "rollout", cmp.Or(string(act), "status"), "--json"); err != nil {
		return s, err
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("rollout of %s: %w", o.host, err)
	}
	return s, nil
}

func (o overSSH) Audit(ctx context.Context, since auditlog.Moment) iter.Seq2[auditlog.Row, error] {
	return auditlog.Read(o.host, func(string) (rows []json.RawMessage, next string, err error) {
		var out bytes.Buffer
		args := []string{"audit", "--json"}
		if !since.IsZero() {
			args = append(args, "--after", since.String())
		}
		if err := o.run(ctx, nil, &out, args...); err != nil {
			return nil, "", err
		}
		for line := range bytes.Lines(out.Bytes()) {
			rows = append(rows, bytes.TrimSpace(line))
		}
		return rows, "", nil
	})
}

func (o overSSH) Revocations(ctx context.Context) (r archive.Revocations, err error) {
	var out bytes.Buffer
	if err := o.run(ctx, nil, &out, "revocations"); err != nil {
		return r, err
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("revocations of %s: %w", o.host, err)
	}
	return r, nil
}

func (o overSSH) SetRevocations(ctx context.Context, s trust.SignedRevocations) error {
	list, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return o.run(ctx, bytes.NewReader(list), io.Discard, "revocations", "--import")
}

// Rotate runs the host's own program there.
func (o overSSH) Rotate(ctx context.Context, host, need string) (string, error) {
	var out strings.Builder
	err := o.at(ctx, host, "flor", nil, &out, "rotate", need)
	return strings.TrimSpace(out.String()), err
}

func (o overSSH) Host() string { return o.host }

func (o overSSH) Tokens(ctx context.Context) (all []join.Token, err error) {
	return all, o.join(ctx, nil, &all, "tokens")
}

func (o overSSH) CreateToken(ctx context.Context, t join.Token) (made join.Token, err error) {
	return made, o.join(ctx, t, &made, "create-token")
}

func (o overSSH) RevokeToken(ctx context.Context, id string) (t join.Token, err error) {
	return t, o.join(ctx, nil, &t, "revoke-token", id)
}

func (o overSSH) Joins(ctx context.Context) (all []join.Request, err error) {
	return all, o.join(ctx, nil, &all, "list")
}

func (o overSSH) DecideJoin(ctx context.Context, host string, d control.Decision) (r join.Request, err error) {
	return r, o.join(ctx, d, &r, "decide", host)
}

func (o overSSH) Issued(ctx context.Context, i join.Issued) error {
	return o.join(ctx, i, &i, "issued")
}

// join runs flor-provider join there, with JSON in and out.
func (o overSSH) join(ctx context.Context, about, v any, args ...string) error {
	in, err := json.Marshal(about)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := o.run(ctx, bytes.NewReader(in), &out, append([]string{"join"}, args...)...); err != nil {
		return err
	}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		return fmt.Errorf("join %s of %s: %w", strings.Join(args, " "), o.host, err)
	}
	return nil
}

// run runs the provider's program there.
func (o overSSH) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	return o.at(ctx, o.host, "flor-provider", in, out, args...)
}

// at runs one of a host's programs.
func (o overSSH) at(ctx context.Context, host, program string, in io.Reader, out io.Writer, args ...string) error {
	return asRoot(ctx, host, in, out, append([]string{o.topology.Hosts[host].Instance.Program(program)}, args...)...)
}

// asRoot runs a command of a host over SSH.
func asRoot(ctx context.Context, host string, in io.Reader, out io.Writer, command ...string) error {
	words := append([]string{"root@" + host}, command...)
	cmd := exec.CommandContext(ctx, "ssh", words...)
	var problem strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &problem
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install an SSH client", err)
	}
	if err != nil {
		return fmt.Errorf("ssh %s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(problem.String()))
	}
	return nil
}
