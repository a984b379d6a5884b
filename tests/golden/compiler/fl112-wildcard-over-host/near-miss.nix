{ base, merge, ... }:
merge base {
  services.wiki.aliases = [
    "*.betas"
    "beta"
  ];
}
