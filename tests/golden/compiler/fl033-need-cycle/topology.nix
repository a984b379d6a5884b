{ base, merge, ... }: merge base {
  providers.config.hosts = [ "alpha" ];
  services.wiki.files.a = { ref = "a"; after = [ "config-wiki-b" ]; };
  services.wiki.files.b = { ref = "b"; after = [ "config-wiki-a" ]; };
  services.wiki.files.c = { ref = "c"; after = [ "config-wiki-a" ]; };
}
