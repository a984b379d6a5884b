# Each revision is the cluster with one thing changed, and newer than those before.
# facts: addresses and SSH host keys by host, nextHostKey, keys that sign documents.
# network: do hosts also get their documents over the network?
{ mkCluster, self ? { }, serial ? self.lastModified, facts, roots, network ? true }:
let
  base = import ./topology.nix { inherit facts roots network; };
  wiki = [ "wiki" ];

  # Outline needs a password that lies at the provider.
  secret = generation: {
    providers = base.providers // { file.hosts = [ "drhorrible" ]; };
    services = base.services // {
      outline = base.services.outline // {
        files.smtp-password = { inherit generation; ref = "outline/smtp-password"; mode = "0440"; restart = "outline.service"; };
      };
    };
  };

  revisions = [
    { name = "base"; change = { }; }
    # Certificates live for seconds, so that scenarios see them renewed.
    { name = "brief"; change.providers = base.providers // { cert = base.providers.cert // { lifetime = 10; }; }; }
    { name = "without-wiki"; change = { services = removeAttrs base.services wiki; groups = base.groups // { apps = [ "auth" "outline" ]; }; }; }
    { name = "new-host-key"; change.hosts = base.hosts // { ursula = base.hosts.ursula // { sshHostKey = facts.nextHostKey; }; }; }
    { name = "with-file"; change = secret 1; }
    { name = "file-rotated"; change = secret 2; }
  ];
  numbered = builtins.genList (i: builtins.elemAt revisions i // { inherit i; }) (builtins.length revisions);
in
builtins.listToAttrs (map
  (r: {
    inherit (r) name;
    value = mkCluster (base // r.change // { inherit self; serial = serial + r.i; });
  })
  numbered)
