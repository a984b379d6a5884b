# Secrets by reference. The unit does not wait for one of them.
{
  mkCluster,
  modules,
  lib,
  ...
}:
let
  cluster = import ../../../tests/cluster/cluster.nix;
in
{
  imports = [
    modules.default
    ({ config, ... }: {
      seen = lib.mapAttrs (_: lib.mapAttrs (_: n: n.files)) config.services.florete.needs;
    })
  ];
  services.florete.cluster = mkCluster (
    lib.recursiveUpdate cluster {
      providers.file.hosts = [ "drhorrible" ];
      services.wiki.files = {
        smtp-password = {
          ref = "wiki/smtp-password";
          restart = "wiki.service";
        };
        logo = {
          ref = "wiki/logo";
          restart = "wiki.service";
        };
      };
    }
  );
  services.florete.hostName = "ursula";
  services.florete.needs.wiki.file-logo.start = "always";
}
