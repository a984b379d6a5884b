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
		Short: "Restart units that use old etcd certificates",
		Long: `Restart the etcd member and the providers of this provider host after you replaced the
certificates in /etc/florete/store. systemd runs this command when a file in this directory
changes. Units that started after the change are not restarted.`,
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
