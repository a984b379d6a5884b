# Outline's account, and a service of systemd, may have certificates by the Workload API; that
# service reaches what a host with the role reader does.
base: {
  hosts = base.hosts // {
    raishan = base.hosts.raishan // {
      callers."service/batch" = [ "batch.service" ];
    };
  };
  services = base.services // {
    outline = base.services.outline // {
      workloadApi = true;
    };
    batch = {
      host = "raishan";
      port = 4658;
      visibility = "host";
      roles = [ "writer" ];
      workloadApi = true;
    };
  };
}
