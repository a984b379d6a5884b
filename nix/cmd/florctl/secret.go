package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/nix/operator/scaffold"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/secret"
)

func newSecretCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "secret", Short: "Send secret files to a provider, and record public keys"}
	cmd.AddCommand(newSecretSetCmd(), newSecretUnsetCmd(), newSecretListCmd(), newSecretRecordCmd())
	return cmd
}

func newSecretSetCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set REF [FLAKE]",
		Short: "Send a secret file to the provider that delivers it",
		Long: `Send a secret, such as a password, to the provider of kind file, which delivers it to hosts. The
command reads the secret from standard input. REF is the name that the flake declares for the
secret in services.<name>.files.<file>.ref. To undo the command, run florctl secret unset.

The provider keeps the secret encrypted. A secret that was sent takes precedence over a file
named REF in the provider's own directory.

Hosts that already have an older version keep it until you raise the generation of the file in
the flake.`,
	}
	cluster := ofCluster(cmd)
	from := cmd.Flags().String("from", "", "read the secret from this `FILE` instead of standard input")
	cmd.Args = words(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			if fi, err := os.Stat(args[1]); err == nil && !fi.IsDir() {
				return fmt.Errorf("%s: found a file, want the directory or the reference of a flake: to send the content of the file, pass --from %[1]s", args[1])
			}
		}
		content, err := readSecret(cmd, args[0], *from)
		if err != nil {
			return err
		}
		p, err := cluster(args[1:])
		if err != nil {
			return err
		}
		var sent file.File
		at, err := p.Ask(cmd.Context(), file.Name, "/v1/files", file.File{Ref: args[0], Content: &content}, &sent)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: stored file %q, %d bytes; hosts with an older copy fetch it when you raise its generation\n", at, sent.Ref, len(content))
		return nil
	}
	return cmd
}

// readSecret reads the content of a secret from a file, standard input or the terminal: other users
// of the machine can see arguments. The terminal does not echo it.
func readSecret(cmd *cobra.Command, ref, from string) (string, error) {
	var content []byte
	stdin, err := os.Stdin.Stat()
	switch {
	case err != nil:
	case from != "":
		content, err = os.ReadFile(from)
	case stdin.Mode()&os.ModeCharDevice != 0:
		typed, _ := agefile.Prompt("content of "+ref, "--from FILE") // without a terminal there is none
		content = []byte(typed)
	default:
		content, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<20))
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("content of %s: %w", ref, err)
	case len(content) == 0:
		return "", fmt.Errorf("content of %s: empty, want the secret on standard input or in --from FILE", ref)
	case !utf8.Valid(content):
		return "", fmt.Errorf("content of %s: not text in UTF-8: send the secret in base64, and decode it in the service", ref)
	}
	return string(content), nil
}

func newSecretUnsetCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "unset REF [FLAKE]", Short: "Remove a secret file from its provider", Long: `Remove a secret that florctl secret set sent to the provider of kind file. Hosts keep their
copies. If the provider's own directory has a file named REF, the provider delivers that file
instead. To undo the command, send the secret again.`}
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		at, err := c.Ask(cmd.Context(), file.Name, "/v1/files", file.File{Ref: args[0]}, &file.File{})
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: no longer has a sent file %q; hosts keep their copies\n", at, args[0])
		return nil
	})
}

func newSecretListCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "List the secrets that providers keep", Long: `List the secrets that providers keep, without their content. The list contains the generated
secrets, with their public keys, and the files that florctl secret set sent.`}
	show := terminal.Shown(cmd, "print the secrets as a JSON list, without their content")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		var all struct {
			secret.Publics
			file.Sent
		}
		var failed []error
		for kind, of := range map[string]struct {
			path string
			v    any
		}{file.Name: {"/v1/files", &all.Sent}, secret.Name: {"/v1/secrets", &all.Publics}} {
			if len(c.Topology.Providers[kind].Hosts) == 0 {
				continue
			}
			_, err := c.Ask(cmd.Context(), kind, of.path, nil, of.v)
			failed = append(failed, err)
		}
		if err := errors.Join(failed...); err != nil {
			return err
		}
		rows := []any{} // a generated secret has "secret", a file "ref"
		for _, s := range all.Secrets {
			rows = append(rows, s)
		}
		for _, f := range all.Files {
			rows = append(rows, f)
		}
		return show(rows, func(w io.Writer) error {
			t := terminal.NewTable(w, "SECRET", "IS", "GENERATION", "SINCE", "PUBLIC HALF")
			for _, s := range all.Secrets {
				t.Row(s.Secret, s.Generate, s.Generation, s.Made.UTC().Format(time.RFC3339), cmp.Or(strings.Join(s.Public, ", "), "-"))
			}
			for _, f := range all.Files {
				t.Row(f.Ref, "file of "+f.By.Short(), "-", f.Sent.UTC().Format(time.RFC3339), "-")
			}
			return t.Flush()
		})
	})
}

func newSecretRecordCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record FILE [FLAKE]",
		Short: "Record the public keys of secrets in the flake",
		Long: `Record the public keys of generated secrets in the flake, so that the flake can use them. The
command writes to FILE the public key of each secret that has public = ./FILE;. The flake reads
these keys as public.<secret>. Commit FILE afterwards.

A secret is generated when its first reader fetches it. The command exits 2 if a secret is not
generated yet, or has an older generation than the flake names.`,
	}
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		var made secret.Publics
		_, err := c.Ask(cmd.Context(), secret.Name, "/v1/secrets", nil, &made)
		if err != nil {
			return err
		}
		return scaffold.RecordPublics(cmd.OutOrStdout(), args[0], c.Topology.Secrets, made.Secrets)
	})
}
