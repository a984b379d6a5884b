# A wrong value is one fault, and its consequences are no further faults.
{ base, merge, ... }:
merge base {
  federated.blue = true;
  providers = {
    oidc = {
      hosts = [ "alpha" ];
      issuer = "https://auth.example.org";
    };
    mailbox = {
      hosts = [ "alpha" ];
      port = 4603;
      run = "/run/mailbox";
      answer.password = { };
    };
  };
  roles = {
    operator.serviceGroups = "control-plane";
    reader.services = [ "wik" ];
  };
  services = {
    board = {
      host = "beta";
      ports = [
        80
        443
      ];
    };
    fast = {
      port = 8111;
      replicas = 1;
      placement.tags = "ssd";
    };
    "web\t" = {
      host = "beta";
      port = 99;
    };
  };
}
