# An account, or a unit on each of its hosts.
{ base, merge, ... }:
merge base {
  hosts.alpha.callers."service/job" = [ "job@1.service" ];
  hosts.beta.callers."service/job" = [ "job.service" ];
  services = {
    wiki = {
      user = "wiki-js";
      workloadApi = true;
    };
    job = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 9100;
      visibility = "host";
      workloadApi = true;
    };
  };
}
