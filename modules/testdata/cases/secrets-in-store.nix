{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = flake;
    hostName = "drhorrible";
    host.settings.ssh-host-key = "/nix/store/aaaa-key";
    provider.usersFile = "/nix/store/aaaa-users";
    provider.settings.oidc.users = "/nix/store/bbbb-users";
    provider.settings.file.dir = "/nix/store/cccc-files";
  };
}
