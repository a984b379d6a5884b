# Wrong secrets of connectors: one in the store, one without a connector, and one without a users
# file beside it.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = flake;
    hostName = "drhorrible";
    provider = {
      settings.oidc.users = "/etc/florete/users.hujson";
      connectorSecrets.corp = "/nix/store/aaaa-ldap";
    };
  };
}
