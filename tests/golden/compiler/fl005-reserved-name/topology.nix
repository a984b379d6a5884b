{ base, merge, ... }:
merge base {
  services.florete-provider-oidc = {
    host = "beta";
    port = 1;
  };
}
