package main

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/published"
)

func newAccessCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "access", Short: "Request a role for some hours, or approve that"}
	cmd.AddCommand(newAccessRequestCmd(), newAccessListCmd(), newAccessApproveCmd(), newAccessEndCmd())
	return cmd
}

func newAccessRequestCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "request ROLE [FLAKE] --reason TEXT",
		Short: "Request a role for some hours",
		Long: `Request a role for some hours, for the user who runs the command. The topology permits this in
roles.ROLE.request. The role is in force within seconds after an approver runs the command that
is printed, and ends by itself.

A request that nobody approves is forgotten after a day. To take it back, run florctl access end.`,
	}
	lasts := cmd.Flags().Duration("for", time.Hour, "`TIME` for which the role is requested, such as 2h")
	reason := cmd.Flags().String("reason", "", "`TEXT` for the approver and the audit log, at most 200 bytes")
	cmd.MarkFlagRequired("reason")
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		return c.RequestAccess(cmd.Context(), args[0], *reason, *lasts)
	})
}

func newAccessListCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [FLAKE]",
		Short: "Print requests for roles, and grants in force",
		Long: `Print the requests for roles that wait for an approver, and the grants that are in force. Grants
without a valid signature of an approver are left out. The command changes nothing.`,
	}
	show := terminal.Shown(cmd, "print the requests and grants as a JSON list")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		items, err := c.Access(cmd.Context())
		if err != nil {
			return err
		}
		return show(items, func(w io.Writer) error { return published.PrintAccess(w, items) })
	})
}

func newAccessApproveCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve ID [FLAKE]",
		Short: "Approve a request for a role",
		Long: `Approve a request that florctl access list shows. ID is its ID, or the beginning of it. The
command shows who gets which role and until when, asks, and signs a grant with your SSH key.
Hosts that publish services of the role receive the grant within seconds. The grant ends by
itself. To end it earlier, run florctl access end.

Nobody can approve a request of their own.`,
	}
	key, yes := approving(cmd)
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		return c.ApproveAccess(cmd.Context(), args[0], *key, *yes)
	})
}

func newAccessEndCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "end ID [FLAKE]",
		Short: "End a grant, or drop a request for a role",
		Long: `End a grant before its time. ID is an ID that florctl access list shows, or the beginning of it.
Every approver of the role can end it, with an SSH key. Hosts close the connections that the
grant permitted within seconds. A grant that was ended is never in force again.

If ID is a request that waits, it is dropped without a signature. The user who made the request
can do so too.`,
	}
	key, yes := approving(cmd)
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		return c.EndAccess(cmd.Context(), args[0], *key, *yes)
	})
}

// approving adds the flags of commands that sign as an approver.
func approving(cmd *cobra.Command) (key *string, yes *bool) {
	file := ".ssh/id_ed25519"
	if home, err := os.UserHomeDir(); err == nil {
		file = filepath.Join(home, file)
	}
	key = cmd.Flags().String("key", file, "SSH key `FILE` in users.<name>.approvalKeys; a public key if an SSH agent has the private one")
	cmd.Flags().Lookup("key").DefValue = "~/.ssh/id_ed25519"
	yes = cmd.Flags().Bool("yes", false, "sign without a question")
	return key, yes
}
