package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/agent/localapi"
	"github.com/florete/florete/agent/report"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
)

// errInterrupted is the error that flor join returns if it is stopped before the device is admitted
// or refused.
var errInterrupted = errors.New("interrupted before the device is admitted: activation goes on waiting, and flor join without a token shows the decision")

// joinPoll is the interval at which flor join asks the provider whether the device is admitted.
const joinPoll = 2 * time.Second

func newJoinCmd(m *instance) *cobra.Command {
	var state hostdir.Layout
	var dir, tpm string
	cmd := &cobra.Command{
		Use:   "join [TOKEN | -]",
		Short: "Join a cluster with a token",
		Long: `Ask to make this machine a host of a cluster, with a join token from florctl join token create.
Run this command as root. The flake must declare the host without an SSH host key. The command
creates the device key of the machine, in the TPM if there is one, and sends a request to the
provider that the token names.

The command waits until an operator admits the machine with florctl join approve. If you stop
the command, flor activate continues to wait. To wait again yourself, run flor join without a
token.

If TOKEN is -, the command reads the token from standard input, so that other accounts do not
see it in the list of processes. To undo the command, run florctl join reject. After the machine
was admitted, run florctl revoke --host-key instead.

Exit status: 0 if the machine is admitted; 1 if the command or the configuration is wrong; 2 if
the machine was refused, rejected or revoked.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := state.Manifest()
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w: install this host's documents and start its units first", err)
			}
			if err != nil {
				return err
			}
			manifest := doc.Manifest()
			roots, err := trust.NewRoots(manifest.TrustDomain, manifest.Trust.Roots)
			if err != nil {
				return err
			}
			host := &fetch.Host{Layout: state, Manifest: manifest, Serial: doc.Envelope.Serial, Roots: roots, TPM: tpm}
			if len(args) > 0 {
				token, err := joinToken(cmd.InOrStdin(), args[0])
				if err != nil {
					return err
				}
				if err := host.BeginJoin(token, report.FindFacts(string(state), report.Declared)); err != nil {
					return err
				}
				in := "in a file, which can be copied: this machine has no TPM"
				switch {
				case state.DeviceKeyIn() == hostdir.InTPM:
					in = "in the TPM, and in no other"
				case tpm == devicekey.None:
					in = "in a file, which can be copied"
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "device key %s: %s\n", state.DeviceKey(), in)
			}
			if err := awaitJoin(cmd.Context(), host, cmd.ErrOrStderr()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is admitted: activation enrols it\n", manifest.Host)
			return enrolNow(state, manifest, dir)
		},
	}
	m.state(cmd, &state)
	cmd.Flags().StringVar(&tpm, "tpm", devicekey.DefaultTPM, "`DEVICE` of the TPM that keeps the device key, or a Unix socket to a TPM; none keeps the key in a file")
	m.refetch(cmd, &dir)
	return cmd
}

func joinToken(in io.Reader, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	line, err := bufio.NewReader(io.LimitReader(in, 4<<10)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// awaitJoin repeats the join request until the provider admits or refuses the device. It prints
// each new message of the provider.
func awaitJoin(ctx context.Context, h *fetch.Host, out io.Writer) error {
	printed := ""
	for {
		a, failed := h.Join(ctx)
		note := a.Message
		switch {
		case ctx.Err() != nil && (failed != nil || a.State == hostapi.JoinPending):
			return errInterrupted
		case failed != nil && (failed.Kind != hostapi.Transient || !failed.Received):
			fmt.Fprintln(out, "flor:", terminal.Text(failed.Message))
			return exit(2)
		case failed != nil:
			note = failed.Message
		case a.State == hostapi.JoinApproved:
			return nil
		case a.State != hostapi.JoinPending:
			fmt.Fprintf(out, "flor: %s: %s\n", a.State, terminal.Text(note))
			if a.State == hostapi.JoinRevoked {
				fmt.Fprintf(out, "flor: to join as another device, remove %s first\n", h.Layout.DeviceKey())
			}
			return exit(2)
		}
		if note != printed {
			fmt.Fprintln(out, terminal.Text(note))
			printed = note
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-time.After(joinPoll):
		}
	}
}

// enrolNow makes activation request the node's certificate at once. Without it, activation would
// wait for the end of its backoff. enrolNow does nothing if activation has the certificate already.
func enrolNow(l hostdir.Layout, m document.Manifest, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, n := range m.Needs {
		if id, err := n.CertID(); n.Kind != document.KindCert || err != nil || id != m.Identity.ID {
			continue
		}
		if s, err := l.NeedState(n.ID); err != nil || s.State != hostdir.NeedFulfilled {
			return localapi.Refetch(m, dir, n.ID)
		}
	}
	return nil
}
