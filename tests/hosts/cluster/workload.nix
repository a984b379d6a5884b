# Outline's account and a systemd unit may get certificates from the Workload API; the unit reaches
# the services of the role writer. Outline also has tokens, which readers verify.
base: {
  hosts = base.hosts // {
    raishan = base.hosts.raishan // {
      callers."service/batch" = [ "batch.service" ];
    };
  };
  services = base.services // {
    outline = base.services.outline // {
      workloadApi = true;
      jwtAudiences = [ "vault" ];
    };
    tokens = {
      host = "drhorrible";
      port = 5557;
      listenPort = 80;
    };
    batch = {
      host = "raishan";
      port = 4658;
      visibility = "host";
      roles = [ "writer" ];
      workloadApi = true;
    };
  };
  roles = base.roles // {
    reader.services = base.roles.reader.services ++ [ "tokens" ];
  };
  providers = base.providers // {
    jwt = {
      hosts = [ "drhorrible" ];
      issuer = "http://tokens.demo.flor.rete";
    };
  };
}
