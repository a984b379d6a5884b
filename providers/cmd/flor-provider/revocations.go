package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
)

// revocationsCmd prints the revocation list that hosts are offered, or replaces it. It may run
// beside the provider.
func revocationsCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revocations",
		Short: "Print the revocation list that hosts are offered, as JSON",
		Long: `Print the revocation list that hosts are offered, as JSON. With --import, offer them the
one that florctl revoke signed, read from standard input: it is signed by a key that this
provider's policy pins, and its number is above that of the one before.`,
	}
	replace := cmd.Flags().Bool("import", false, "read another list from standard input")
	return t.withArchive(cmd, func(cmd *cobra.Command, s *settings.Settings, a archive.Archive) error {
		if *replace {
			if err := importRevocations(cmd, s, a); err != nil {
				return fmt.Errorf("standard input: %w", err)
			}
		}
		r, err := a.Revocations(cmd.Context())
		if err != nil {
			return err
		}
		return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
	})
}

func importRevocations(cmd *cobra.Command, s *settings.Settings, a archive.Archive) error {
	policy, err := readPolicy(s)
	if err != nil {
		return err
	}
	by, err := nss.Current()
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 2*trust.MaxRevocations))
	if err != nil {
		return err
	}
	var list trust.SignedRevocations
	if err := strictjson.Decode(b, &list); err != nil {
		return err
	}
	_, _, err = a.SetRevocations(cmd.Context(), list, archive.ListTerms{
		Cluster: policy.Cluster, Keys: policy.Trust.SigningKeys,
		Record: func(last, next *trust.Revocations) []store.Op {
			return server.Ops(control.RevokedRows(server.Row{Time: time.Now().UTC(), Caller: "the account " + by.Username + " of this host", Kind: config.Name}, last, next))
		},
	})
	return err
}
