# Accounts that get a service's certificate from the Workload API, and units among callers.
{ base, merge, ... }:
merge base {
  hosts.beta.callers = {
    node = [
      "root"
      "backup.service"
    ];
    "service/job" = [
      "job.service"
      1001
      "job@nightly.service"
    ];
  };
  services = {
    wiki = {
      user = "wiki-js";
      workloadApi = true;
    };
    job = {
      host = "beta";
      port = 9100;
      visibility = "host";
      workloadApi = true;
    };
  };
}
