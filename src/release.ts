/** The release of this build, as /capabilities shows it and the package names it. */
export const release = '1.0.0'
