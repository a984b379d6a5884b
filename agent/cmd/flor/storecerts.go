package main

import (
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostdir"
)

func newStoreCertsCmd(m *instance) *cobra.Command {
	var layout hostdir.Layout
	cmd := &cobra.Command{
		Use:   "store-certificates",
		Short: "Restart units with former etcd certificates",
		Long: `Restart the etcd member of this host, and the providers that call it, if they started before the
certificates in /etc/florete/store changed. A path unit runs this command when a file there
changes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := units.StoreCertificates{Dir: filepath.Join(m.Etc(), "store"), Started: units.Started, Restart: activation.NotifySystemd, Log: slog.Default()}
			provides := layout.Provides()
			if provides.StoreMember {
				c.Units = append(c.Units, m.Unit("store.service"))
			}
			for _, kind := range provides.Kinds {
				c.Units = append(c.Units, m.Unit("provider-"+kind+".service"))
			}
			return units.ApplyStoreCertificates(cmd.Context(), c)
		},
	}
	m.state(cmd, &layout)
	return cmd
}
