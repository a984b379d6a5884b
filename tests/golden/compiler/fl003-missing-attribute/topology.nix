{ base, merge, ... }:
merge
  (removeAttrs base [
    "hosts"
    "trustDomain"
  ])
  {
    hosts.alpha = removeAttrs base.hosts.alpha [ "address" ];
    hosts.beta = removeAttrs base.hosts.beta [ "address" ];
    hosts.gamma = { };
    hosts.gate.relay = true;
    hosts.vault.hidden = true;
    services.nowhere = { };
    services.elsewhere = {
      port = 2;
      placement.group = "eu";
    };
    services.somewhere = {
      replicas = 1;
      placement.strategy = "locality";
      upstream = "unix:/run/x";
    };
    services.wiki.sso.mode = "oidc";
    providers.oidc = { };
    services.soft = {
      host = "beta";
      port = 23232;
    };
    providers.git = {
      hosts = [ "alpha" ];
      forges.soft.service = "soft";
    };
  }
