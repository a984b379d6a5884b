package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/replay"
)

func newSessionsReplayCmd() *cobra.Command {
	var identity, cast string
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Play a recorded SSH session",
		Long: `Play the recording of an SSH session in a browser on this machine. FILE is a copy of the recording
that the host of the service made. The file that you pass with --identity contains the private key
of one of the recipients of the recordings: record.recipients of the service.

The command prints who opened the session, and the SHA-256 digest of FILE. Compare the digest with
the one that florctl audit shows for the session. If they differ, somebody has changed FILE.

Then the command prints the URL of a page with the player, and serves the page until you press
Ctrl-C. The URL works only on this machine. It contains a random text: whoever has the URL can see
the session. The command does not write the decrypted session to a disk.

If the end of the recording is missing, because the session goes on or was cut off, the player
stops where the recording stops. If a piece of the recording is damaged, the command plays the
pieces before it, and exits with status 1.

With --cast, the command writes the decrypted session to a file instead, for example for
asciinema, which plays it in a terminal.`,
		Example: `  # Play the recording in the file session.cast.age.
  florctl sessions replay session.cast.age --identity ~/recordings.key`,
		Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.StringVar(&identity, "identity", "", "`FILE` that contains the age identity that opens the recording")
	f.StringVar(&cast, "cast", "", "write the session to this `FILE` as an asciicast file, instead of playing it; - for standard output")
	cmd.MarkFlagRequired("identity")
	cmd.SetOut(os.Stdout) // that of florctl sessions replaces characters, which an asciicast file needs
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		identities, err := agefile.ReadIdentities(identity)
		if err != nil {
			return err
		}
		read := terminal.Progress("decrypting " + args[0])
		r, err := replay.Open(args[0], identities)
		read()
		if err != nil {
			return err
		}
		defer r.Close()
		if cmd.Flags().Changed("cast") {
			err = writeCast(cmd, r, cast)
		} else {
			err = play(cmd, r)
		}
		if err == nil && r.Damage != nil {
			err = fmt.Errorf("%s: %w", args[0], r.Damage)
		}
		return err
	}
	return cmd
}

func writeCast(cmd *cobra.Command, r *replay.Recording, path string) error {
	if path == atomicfile.Stdout { // atomicfile.Output would write a temporary file first
		if err := r.WriteCast(cmd.OutOrStdout()); err != nil {
			return err
		}
		return r.Print(cmd.ErrOrStderr())
	}
	printed, err := atomicfile.Output(path, 0o600, cmd.OutOrStdout(), func(f *os.File) error { return r.WriteCast(f) })
	if err != nil {
		return err
	}
	return r.Print(apart(cmd, printed))
}

func play(cmd *cobra.Command, r *replay.Recording) error {
	out := cmd.OutOrStdout()
	if err := r.Print(out); err != nil {
		return err
	}
	return r.Serve(cmd.Context(), func(url string) {
		fmt.Fprintf(out, "\nOpen this page in a browser. Ctrl-C ends it.\n%s\n", url)
	})
}
