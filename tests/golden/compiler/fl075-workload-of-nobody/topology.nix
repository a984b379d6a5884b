# No account and no unit, on one of its hosts or on all.
{ base, merge, ... }:
merge base {
  hosts.beta.callers."service/job" = [ "job.service" ];
  services = {
    wiki.workloadApi = true;
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
