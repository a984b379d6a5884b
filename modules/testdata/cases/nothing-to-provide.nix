{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = flake;
    hostName = "laptop";
    provider.enable = true;
  };
}
