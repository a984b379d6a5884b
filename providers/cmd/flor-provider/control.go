package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/tlog"
)

// controlCmd returns the command that serves the operators' API to the account that runs it.
func controlCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "control [METHOD PATH]",
		Short: "Call the control API as root",
		Long: `Call the control API of the config provider on this host, for example from a script. florctl
uses this API to publish and to roll back. Run this command as root on a host of a config
provider. The command sends one request and prints the answer. It reads the body of a POST
request from standard input. GET /v1/openapi.json returns the description of the API.

The command works without the forwarder, and even if the provider does not run or the cluster
has no operators. The audit log records each change, with your account.

Without METHOD and PATH, the command serves the API on standard input and output. florctl --via
ssh runs it in this way.`,
		Example: `  # Print the published versions.
  flor-provider control GET /v1/versions
  # Pause the rollout that is under way. The request has no body.
  flor-provider control POST /v1/rollout/pause < /dev/null`,
	}
	t.withControl(cmd, func(cmd *cobra.Command, c *http.Client, conn net.Conn) error {
		if words := cmd.Flags().Args(); len(words) == 2 {
			var body io.Reader
			if words[0] == http.MethodPost {
				body = cmd.InOrStdin()
			}
			return callControl(cmd.Context(), c, words[0], words[1], body, func(answer io.Reader) error {
				_, err := io.Copy(cmd.OutOrStdout(), answer)
				return err
			})
		}
		go func() {
			_, _ = io.Copy(conn, cmd.InOrStdin())
			conn.Close()
		}()
		if _, err := io.Copy(cmd.OutOrStdout(), conn); !errors.Is(err, io.ErrClosedPipe) {
			return err
		}
		return nil
	})
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 0 && len(args) != 2 {
			return fmt.Errorf("found %d words, want METHOD and PATH, or neither", len(args))
		}
		return nil
	}
	return cmd
}

// importCmd returns the command that imports a cluster's documents into this provider.
func importCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Publish signed documents from a file",
		Long: `Publish documents that an operator signed on another machine with florctl publish --out. Run
this command as root on a host of a config provider, for example if the operator's machine has
no network. The command reads the documents from standard input, and the config provider offers
them to hosts at once. To undo the command, run florctl rollback.

The provider refuses documents that are older than its current documents, and documents without
the signature of a key in its policy.`,
		Example: `  # Publish the signed documents in the file documents.
  flor-provider import < documents`,
	}
	atOnce := cmd.Flags().Bool("at-once", false, "offer the documents to all hosts at once instead of in waves, and end a rollout that is under way")
	beyond := cmd.Flags().Bool("beyond-budget", false, "with --at-once, change more hosts at the same time than their disruption budgets permit")
	return t.withControl(cmd, func(cmd *cobra.Command, c *http.Client, _ net.Conn) error {
		path := "/v1/publish"
		if *atOnce {
			path += "?atOnce=true"
			if *beyond {
				path += "&beyondBudget=true"
			}
		}
		return callControl(cmd.Context(), c, http.MethodPost, path, cmd.InOrStdin(), func(answer io.Reader) error {
			var p control.Published
			if err := json.NewDecoder(answer).Decode(&p); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), archive.Report(p.Version, p.Changed))
			if p.Rollout != nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: flor-provider control GET /v1/rollout\n", advance.Describe(*p.Rollout))
			}
			return nil
		})
	})
}

// callControl sends a request to the operators' API, and passes the answer to the function with. If
// the API refuses the request, it returns the refusal as an error.
func callControl(ctx context.Context, c *http.Client, method, path string, body io.Reader, with func(io.Reader) error) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, body)
	if err != nil {
		return err
	}
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return with(answer.Body)
	}
	var refusal hostapi.Error
	if err := json.NewDecoder(answer.Body).Decode(&refusal); err != nil {
		return fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return errors.New(terminal.Text(refusal.Message))
}

// withControl completes a command that calls the operators' API as the account that runs the
// command. The API works directly on the state, so that the provider need not run. The function run
// receives an HTTP client and a connection to the API.
func (t *target) withControl(cmd *cobra.Command, run func(*cobra.Command, *http.Client, net.Conn) error) *cobra.Command {
	return t.withSettings(distribution.Name, cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		db, err := t.existingOf(cmd.Context(), s, distribution.Name)
		if err != nil {
			return err
		}
		defer db.Close()
		var opened []kindState
		defer func() {
			for _, of := range opened {
				of.Close()
			}
		}()
		logs := sync.OnceValues(func() (map[string]tlog.Local, error) { // few requests read them
			var err error
			opened, err = t.existing(cmd.Context(), s)
			all := map[string]tlog.Local{}
			for _, of := range opened {
				all[of.kind] = of.auditLog(s)
			}
			return all, err
		})
		log := slog.New(quiet{journal.New(cmd.ErrOrStderr()).Handler()})
		p := &process{Settings: s, kind: distribution.Name, instance: t.Instance, log: log, store: db, audit: server.NewAudit(db, log)}
		if err := p.openPolicies(); err != nil {
			return err
		}
		by, err := nss.Current()
		if err != nil {
			return err
		}
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- control.ServeAccount(theirs, by.Username, s.Section.(*distribution.Settings).Control(server.Process{
				Instance: t.Instance, Dir: p.dir(), Store: db, Policies: p.policies, Audit: p.audit, Logger: log,
			}, logs))
		}()
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}}
		err = run(cmd, client, ours)
		ours.Close()
		return errors.Join(err, <-served)
	})
}
